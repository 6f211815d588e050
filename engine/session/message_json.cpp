// SPDX-License-Identifier: Apache-2.0
#include "engine/session/session_message.h"

#include "engine/plan/costs_json.h"
#include "engine/plan/plan_json.h"
#include "engine/plan/plan_object.h"
#include "engine/plan/plan_words.h"

namespace stagecraft::engine {
namespace {

constexpr std::array<Word<SessionState>, 8> kStateWords{{{"idle", SessionState::Idle},
                                                         {"preparing", SessionState::Preparing},
                                                         {"running", SessionState::Running},
                                                         {"paused", SessionState::Paused},
                                                         {"stopping", SessionState::Stopping},
                                                         {"finished", SessionState::Finished},
                                                         {"stopped", SessionState::Stopped},
                                                         {"failed", SessionState::Failed}}};
constexpr std::array<Word<GradientCheck>, 4> kGradientWords{{{"off", GradientCheck::Off},
                                                             {"bitwise", GradientCheck::Bitwise},
                                                             {"tolerance", GradientCheck::Tolerance},
                                                             {"failed", GradientCheck::Failed}}};
constexpr std::array<Word<CommandKind>, 6> kCommandWords{{{"start", CommandKind::Start},
                                                          {"pause", CommandKind::Pause},
                                                          {"resume", CommandKind::Resume},
                                                          {"stop", CommandKind::Stop},
                                                          {"trouble", CommandKind::Trouble},
                                                          {"quit", CommandKind::Quit}}};

constexpr std::int64_t kMostInt64 = std::numeric_limits<std::int64_t>::max();
constexpr double kMostNumber = std::numeric_limits<double>::max();

// JSON has no infinity: a loss that diverged travels as null.
Json numberJson(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }
double numberOf(const Json& json)
{
    return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

Json stageJson(const StageActivations& a)
{
    return {{"saved_bytes", a.saved}, {"wgrad_bytes", a.forWeights}, {"allocator_bytes", a.booked}};
}
Json rankJson(const RankActivations& a)
{
    Json json{{"peak_bytes", a.peak}};
    if (a.predicted) json["predicted_bytes"] = *a.predicted;
    return json;
}

struct MessageWriter {
    Json operator()(const StateMessage& m) const
    {
        return {{"message", "state"}, {"state", wordOf(kStateWords, m.state)}};
    }
    Json operator()(const ProgressMessage& m) const
    {
        return {{"message", "progress"}, {"text", m.text}, {"fraction", m.fraction}};
    }
    Json operator()(const FailureMessage& m) const
    {
        Json json{{"message", "failure"}, {"text", m.text}};
        const auto add = [&](const char* key, const std::optional<int>& value) {
            if (value) json[key] = *value;
        };
        add("rank", m.rank);
        add("stage", m.stage);
        add("microbatch", m.microbatch);
        add("step", m.step);
        return json;
    }
    Json operator()(const ResultMessage& m) const
    {
        const RunResult& r = m.result;
        Json loss = Json::array();
        for (const double value : r.loss) loss.push_back(numberJson(value));
        Json costs = Json::array();
        for (const StageCosts& stage : r.measuredCosts) costs.push_back(stageCostsJson(stage));
        Json json{{"message", "result"},
                {"result",
                 {{"mode", r.mode},
                  {"device", r.device},
                  {"steps", r.steps},
                  {"step_ns", r.stepNs},
                  {"predicted_step_ns", r.predictedStepNs},
                  {"ideal_step_ns", r.idealStepNs},
                  {"efficiency", numberJson(r.efficiency)},
                  {"loss", std::move(loss)},
                  {"outputs", r.outputs},
                  {"gradient_check", wordOf(kGradientWords, r.gradientCheck)},
                  {"gradient_max_abs_diff", numberJson(r.gradientMaxAbsDiff)},
                  {"measured_costs", std::move(costs)},
                  {"measured_transfer_ns", r.measuredTransferNs}}}};
        const Throughput& t = r.throughput;
        json["result"]["throughput"] = {{"samples_per_s", numberJson(t.samplesPerSecond)},
                                        {"tokens_per_s", numberJson(t.tokensPerSecond)},
                                        {"flops_per_s", numberJson(t.flopsPerSecond)},
                                        {"peak_flops_per_s", numberJson(t.peakFlopsPerSecond)},
                                        {"utilisation", numberJson(t.utilisation)}};
        if (r.text) json["result"]["text"] = {{"entropy", r.text->entropy}, {"before", r.text->before}, {"after", r.text->after}};
        for (const StageActivations& stage : r.stageActivations) json["result"]["stage_activations"].push_back(stageJson(stage));
        for (const RankActivations& rank : r.rankActivations) json["result"]["rank_activations"].push_back(rankJson(rank));
        return json;
    }
};

void readNumber(JsonObject& object, std::string_view key, double& out)
{
    if (const Json* value = object.require(key)) out = numberOf(*value);
}

Expected<void> readResult(const Json& json, RunResult& r)
{
    JsonObject object(json, "result");
    object.text("mode", r.mode);
    object.text("device", r.device);
    object.integer("steps", r.steps, 0, std::numeric_limits<int>::max());
    object.integer("step_ns", r.stepNs, std::int64_t{0}, kMostInt64);
    object.integer("predicted_step_ns", r.predictedStepNs, std::int64_t{0}, kMostInt64);
    object.integer("ideal_step_ns", r.idealStepNs, std::int64_t{0}, kMostInt64);
    readNumber(object, "efficiency", r.efficiency);
    object.array("loss", [&](const Json& value, const std::string&) -> Expected<void> {
        r.loss.push_back(numberOf(value));
        return {};
    });
    object.array("outputs", [&](const Json& shape, const std::string& path) -> Expected<void> {
        std::vector<std::int64_t> sizes;
        for (const Json& size : shape) {
            if (!size.is_number_integer()) return Error{path + ": a shape is a list of whole numbers"};
            sizes.push_back(size.get<std::int64_t>());
        }
        r.outputs.push_back(std::move(sizes));
        return {};
    });
    object.choice("gradient_check", r.gradientCheck, std::span<const Word<GradientCheck>>(kGradientWords));
    readNumber(object, "gradient_max_abs_diff", r.gradientMaxAbsDiff);
    object.array("measured_costs", [&](const Json& stage, const std::string& path) {
        return readStageCosts(stage, path, r.measuredCosts.emplace_back());
    });
    object.integer("measured_transfer_ns", r.measuredTransferNs, std::int64_t{0}, kMostInt64);
    if (const Json* throughput = object.find("throughput")) {
        JsonObject fast(*throughput, "result.throughput");
        for (const auto& [key, member] : {std::pair{"samples_per_s", &Throughput::samplesPerSecond}, std::pair{"tokens_per_s", &Throughput::tokensPerSecond},
                                          std::pair{"flops_per_s", &Throughput::flopsPerSecond},
                                          std::pair{"peak_flops_per_s", &Throughput::peakFlopsPerSecond}, std::pair{"utilisation", &Throughput::utilisation}})
            readNumber(fast, key, r.throughput.*member);
        object.take(fast.finish());
    }
    if (const Json* learned = object.find("text")) {
        JsonObject text(*learned, "result.text");
        TextLearned& out = r.text.emplace();
        text.number("entropy", out.entropy, 0, kMostNumber);
        text.text("before", out.before);
        text.text("after", out.after);
        object.take(text.finish());
    }
    object.array("stage_activations", [&](const Json& each, const std::string& path) {
        StageActivations& stage = r.stageActivations.emplace_back();
        JsonObject figures(each, path);
        figures.integer("saved_bytes", stage.saved, std::int64_t{0}, kMostInt64);
        figures.integer("wgrad_bytes", stage.forWeights, std::int64_t{0}, kMostInt64);
        figures.integer("allocator_bytes", stage.booked, std::int64_t{0}, kMostInt64);
        return figures.finish();
    });
    object.array("rank_activations", [&](const Json& each, const std::string& path) {
        RankActivations& rank = r.rankActivations.emplace_back();
        JsonObject figures(each, path);
        figures.integer("peak_bytes", rank.peak, std::int64_t{0}, kMostInt64);
        if (figures.has("predicted_bytes")) figures.integer("predicted_bytes", rank.predicted.emplace(), std::int64_t{0}, kMostInt64);
        return figures.finish();
    });
    return object.finish();
}

Expected<SessionMessage> messageOf(const Json& json)
{
    JsonObject object(json, "");
    std::string kind;
    if (object.require("message") != nullptr) object.text("message", kind);
    SessionMessage message;
    if (kind == "state") {
        StateMessage& m = message.emplace<StateMessage>();
        if (object.require("state") != nullptr)
            object.choice("state", m.state, std::span<const Word<SessionState>>(kStateWords));
    } else if (kind == "progress") {
        ProgressMessage& m = message.emplace<ProgressMessage>();
        object.text("text", m.text);
        object.number("fraction", m.fraction, 0, 1);
    } else if (kind == "failure") {
        FailureMessage& m = message.emplace<FailureMessage>();
        object.text("text", m.text);
        const auto read = [&](std::string_view key, std::optional<int>& out) {
            const bool given = object.has(key);
            int value = 0;
            object.integer(key, value, 0, std::numeric_limits<int>::max());
            if (given) out = value;
        };
        read("rank", m.rank);
        read("stage", m.stage);
        read("microbatch", m.microbatch);
        read("step", m.step);
    } else if (kind == "result") {
        ResultMessage& m = message.emplace<ResultMessage>();
        if (const Json* result = object.require("result")) object.take(readResult(*result, m.result));
    } else {
        object.fail("message", fmt::format("\"{}\" is not known; one of \"state\", \"progress\", \"failure\", \"result\"", kind));
    }
    if (Expected<void> read = object.finish(); !read.ok()) return read.error();
    return message;
}

void readTrouble(JsonObject& object, StageTrouble& trouble)
{
    if (object.require("stage") != nullptr) object.integer("stage", trouble.stage, 0, kMaxStages - 1);
    if (object.has("factor")) object.number("factor", trouble.factor.emplace(), 1, kMostSlowdown);
    if (object.has("held")) object.boolean("held", trouble.held.emplace());
    if (!trouble.factor && !trouble.held) object.fail("factor", "is missing; a trouble has a factor, or says whether the stage is held");
}

Expected<SessionCommand> commandOf(const Json& json)
{
    JsonObject object(json, "");
    SessionCommand command;
    if (object.require("command") != nullptr)
        object.choice("command", command.kind, std::span<const Word<CommandKind>>(kCommandWords));
    if (command.kind == CommandKind::Trouble) readTrouble(object, command.trouble);
    if (const Json* plan = object.find("plan")) {
        Expected<Plan> read = readPlanObject(*plan);
        if (read.ok()) command.plan = std::move(read.value());
        else object.fail("plan", read.error().message);
    } else if (command.kind == CommandKind::Start) {
        object.fail("plan", "is missing; a start needs one");
    }
    if (Expected<void> read = object.finish(); !read.ok()) return read.error();
    return command;
}

std::string oneLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

} // namespace

std::string_view stateText(SessionState state) { return wordOf(kStateWords, state); }
std::string_view gradientCheckText(GradientCheck check) { return wordOf(kGradientWords, check); }

std::string writeMessage(const SessionMessage& message) { return oneLine(std::visit(MessageWriter{}, message)); }

Expected<SessionMessage> readMessage(std::string_view json)
{
    Expected<Json> parsed = parseJson(json);
    if (!parsed.ok()) return parsed.error();
    return messageOf(parsed.value());
}

std::string writeCommand(const SessionCommand& command)
{
    Json json;
    json["command"] = wordOf(kCommandWords, command.kind);
    if (command.kind == CommandKind::Start) json["plan"] = Json::parse(writePlan(command.plan));
    if (command.kind == CommandKind::Trouble) {
        json["stage"] = command.trouble.stage;
        if (command.trouble.factor) json["factor"] = *command.trouble.factor;
        if (command.trouble.held) json["held"] = *command.trouble.held;
    }
    return oneLine(json);
}

bool asksForRun(std::string_view line)
{
    const Expected<Json> parsed = parseJson(line);
    return parsed.ok() && parsed.value().is_object() && parsed.value().value("command", Json{}) == "start";
}

Expected<SessionCommand> readCommand(std::string_view line)
{
    Expected<Json> parsed = parseJson(line);
    if (!parsed.ok()) return parsed.error();
    return commandOf(parsed.value());
}

} // namespace stagecraft::engine
