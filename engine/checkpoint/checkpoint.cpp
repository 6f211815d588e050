// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/checkpoint.h"

#include "engine/checkpoint/step_folders.h"
#include "engine/checkpoint/whole_folder.h"
#include "engine/plan/plan_json.h"
#include "engine/plan/plan_object.h"
#include "traces/format/input_file.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

namespace stagecraft::engine {
namespace {

using std::filesystem::path;

constexpr int kVersion = 1;
constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kOptimizer = "optimizer.safetensors";

std::string descriptionOf(const CheckpointContent& content)
{
    nlohmann::ordered_json json{{"stagecraft_checkpoint", kVersion}, {"step", content.step}};
    json["plan"] = nlohmann::ordered_json::parse(writePlan(content.plan));
    return json.dump(2) + "\n";
}

// Of the latest of several checkpoints, or the folder itself where it is one.
Expected<path> stepFolderIn(const path& folder)
{
    std::error_code failed;
    const auto status = std::filesystem::status(folder, failed);
    if (!std::filesystem::exists(status)) return traces::readError(folder, ENOENT);
    if (!std::filesystem::is_directory(status)) return Error{fmt::format("{} is no folder; give one that --checkpoint has written to", folder.string())};
    if (std::filesystem::exists(folder / kCheckpointDescription, failed)) return folder;
    if (const std::optional<StepFolder> latest = latestStepIn(folder)) return latest->path;
    return Error{fmt::format("there is no checkpoint in {}: give a folder that --checkpoint has written to", folder.string())};
}

struct Description {
    int step = 0;
    Plan plan;
};

Expected<Description> readDescription(const path& file)
{
    const Expected<std::string> text = traces::readWholeFile(file);
    if (!text.ok()) return text.error();
    const Expected<Json> json = parseJson(text.value());
    if (!json.ok()) return json.error().in(file.string());
    JsonObject object(json.value(), "");
    Description description;
    int version = 0;
    if (object.require("stagecraft_checkpoint") != nullptr) object.integer("stagecraft_checkpoint", version, kVersion, kVersion);
    if (object.require("step") != nullptr) object.integer("step", description.step, 0, std::numeric_limits<int>::max());
    if (const Json* plan = object.require("plan")) {
        Expected<Plan> read = readPlanObject(*plan);
        if (read.ok()) description.plan = std::move(read).value();
        else object.take(read.error().in("plan"));
    }
    if (Expected<void> read = object.finish(); !read.ok()) return read.error().in(file.string());
    return description;
}

} // namespace

Expected<path> writeCheckpoint(const path& folder, const CheckpointContent& content)
{
    const path own = folder / stepFolderName(content.step);
    Expected<void> written = writeWholeFolder(own, [&](const path& into) -> Expected<void> {
        if (Expected<void> weights = writeTensorFile(into / kWeights, content.weights); !weights.ok()) return weights;
        if (Expected<void> optimizer = writeTensorFile(into / kOptimizer, content.optimizer); !optimizer.ok()) return optimizer;
        return traces::writeWholeFile(into / kCheckpointDescription, descriptionOf(content), traces::Durability::OnDisk);
    });
    if (!written.ok()) return written.error();
    return own;
}

Expected<Checkpoint> openCheckpoint(const path& folder)
{
    Expected<path> own = stepFolderIn(folder);
    if (!own.ok()) return own.error();
    Expected<Description> description = readDescription(own.value() / kCheckpointDescription);
    if (!description.ok()) return description.error();
    Expected<TensorFile> weights = TensorFile::open(own.value() / kWeights);
    if (!weights.ok()) return weights.error();
    Expected<TensorFile> optimizer = TensorFile::open(own.value() / kOptimizer);
    if (!optimizer.ok()) return optimizer.error();
    return Checkpoint{own.value(), description.value().step, std::move(description).value().plan, std::move(weights).value(),
                      std::move(optimizer).value()};
}

} // namespace stagecraft::engine
