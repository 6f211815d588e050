// SPDX-License-Identifier: Apache-2.0
//
// What the documentation lists is what the program writes: the keys of --json (docs/json.md), the parameters of a checkpoint
// (docs/checkpoints.md).
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"

#include <cstdint>
#include <cstring>
#include <set>

namespace stagecraft::cli::test {

namespace {

using testing::HasSubstr;
using traces::test::slurp;
using traces::test::spill;
using traces::test::TemporaryFolder;

std::string page(const std::string& name) { return slurp(std::string(STAGECRAFT_SOURCE_DIR) + "/docs/" + name); }

void addKeys(const Json& json, std::set<std::string>& keys)
{
    for (const auto& [key, value] : json.items()) {
        if (json.is_object()) keys.insert(key);
        if (value.is_structured()) addKeys(value, keys);
    }
}

// Every key stands in the part of docs/json.md that is about the verb, or in the figures that verbs share.
void expectDocumented(const std::string& verb, const Json& json)
{
    static const std::string all = page("json.md");
    std::string text = all.substr(0, all.find("## `simulate`"));
    for (const std::string& part : {"## `" + verb + "`", std::string("### `durations`"), std::string("### `clocks`"), std::string("### `waterfall`")}) {
        const std::size_t begin = all.find(part);
        ASSERT_NE(begin, std::string::npos) << part;
        text += all.substr(begin, all.find("\n## ", begin) - begin);
    }
    std::set<std::string> keys;
    addKeys(json, keys);
    EXPECT_GT(keys.size(), 3U);
    for (const std::string& key : keys) EXPECT_THAT(text, HasSubstr("`" + key + "`")) << verb << " --json";
}

TEST(JsonKeys, OfSimulationsAndTracesAreDocumented)
{
    const TemporaryFolder folder;
    const std::string trace = folder.file("a.strace");
    expectDocumented("simulate", jsonOf({"simulate", "hello", "--steps", "2", "--waterfall", "--memory", "1GiB", "--trace", trace, "--json"}));
    expectDocumented("simulate", jsonOf({"simulate", "--schedule", "pipedream", "--json"}));
    expectDocumented("analyze", jsonOf({"analyze", trace, "--waterfall", "--json"}));
    expectDocumented("compare", jsonOf({"compare", trace, trace, "--json"}));
    expectDocumented("whatif", jsonOf({"whatif", trace, "--schedules", "gpipe,dualpipe", "--json"}));
    spill(folder.file("stuck.csv"), "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
    expectDocumented("validate", Json::parse(stagecraft({"validate", folder.file("stuck.csv"), "--json"}).out));
}

TEST(JsonKeys, OfTheDoctorAreDocumented)
{
    expectDocumented("doctor", jsonOf({"doctor", "--json"}));
}

#if STAGECRAFT_TEST_WITH_TORCH

constexpr const char* kTinyText = R"({"stagecraft_plan": 1, "name": "tiny", "data": {"source": "text"},
    "model": {"layers": [{"type": "embedding", "vocabulary": 64, "sequence": 8, "dim": 8},
                         {"type": "transformer_block", "dim": 8, "heads": 4, "key_value_heads": 2, "ffn": 16, "activation": "swiglu"},
                         {"type": "head", "dim": 8, "vocabulary": 64}], "loss": "cross_entropy"},
    "pipeline": {"ranks": 2, "microbatches": 2}, "run": {"mode": "emulated", "steps": 1}})";

TEST(JsonKeys, OfRunsAreDocumented)
{
    const TemporaryFolder folder;
    spill(folder.file("tiny.plan.json"), kTinyText);
    const Json json = runJsonOf({"run", folder.file("tiny.plan.json"), "--activations", "saved-tensors", "--json"});
    EXPECT_TRUE(json.contains("activations") && json.contains("sample"));
    expectDocumented("run", json);
}

// The header of a safetensors file: its length in eight bytes, then JSON.
std::vector<std::string> tensorNames(const std::string& file)
{
    const std::string bytes = slurp(file);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    std::vector<std::string> names = keysOf(Json::parse(bytes.substr(sizeof length, length)));
    std::erase(names, "__metadata__");
    return names;
}

// The row of a layer in the table names each of its parameters; "norm1.weight" may stand there as `norm1` and `weight`.
void expectParametersDocumented(const std::string& plan, const std::vector<std::string>& layers)
{
    const TemporaryFolder folder;
    spill(folder.file("a.plan.json"), plan);
    runJsonOf({"run", folder.file("a.plan.json"), "--checkpoint", folder.file("kept"), "--json"});
    const std::string text = page("checkpoints.md");
    const std::vector<std::string> names = tensorNames(folder.file("kept/step-0000001/model.safetensors"));
    EXPECT_GE(names.size(), layers.size());
    for (const std::string& name : names) { // "layers.1.norm.weight"
        const std::size_t dot = name.find('.', std::string("layers.").size());
        const std::string& layer = layers.at(std::stoul(name.substr(std::string("layers.").size())));
        const std::string own = name.substr(dot + 1);
        const std::size_t begin = text.find("| `" + layer + "` |");
        ASSERT_NE(begin, std::string::npos) << layer;
        const std::string row = text.substr(begin, text.find('\n', begin) - begin);
        const std::string part = own.substr(0, own.find('.'));
        const std::string last = own.substr(own.rfind('.') + 1);
        EXPECT_TRUE(row.find("`" + own + "`") != std::string::npos ||
                    (row.find("`" + part + "`") != std::string::npos && (part == "second" || part == "shortcut" || row.find("`" + last + "`") != std::string::npos)))
            << name << " of " << layer;
    }
}

TEST(CheckpointParameters, AreDocumentedForEveryKindOfLayer)
{
    expectParametersDocumented(kTinyText, {"embedding", "transformer_block", "head"});
    expectParametersDocumented(R"({"stagecraft_plan": 1, "model": {"image": {"channels": 3, "height": 4, "width": 4}, "layers": [
        {"type": "convolution", "in": 3, "out": 8}, {"type": "residual_block", "in": 8, "out": 16, "stride": 2}, {"type": "pooled_head", "in": 16, "classes": 4}]},
        "pipeline": {"ranks": 2, "microbatches": 2}, "run": {"mode": "emulated", "steps": 1}})",
                               {"convolution", "residual_block", "pooled_head"});
    expectParametersDocumented(R"({"stagecraft_plan": 1, "model": {"layers": [{"type": "linear", "in": 4, "out": 4}, {"type": "synthetic", "in": 4, "out": 4}]},
        "pipeline": {"ranks": 2, "microbatches": 2}, "run": {"mode": "emulated", "steps": 1}})",
                               {"linear", "synthetic"});
}

#endif

} // namespace

} // namespace stagecraft::cli::test
