// SPDX-License-Identifier: Apache-2.0
//
// The model of a plan in its file.
#include "engine/plan/plan_files.h"
#include "engine/plan/plan_json.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace stagecraft;
using namespace stagecraft::engine;
using ::testing::HasSubstr;

namespace {

// A plan of two stages around these layers.
std::string planOf(const std::string& layers, const std::string& more = "")
{
    return R"({"stagecraft_plan":1,"model":{)" + more + R"("layers":[)" + layers + R"(]},"pipeline":{"ranks":1}})";
}

std::string errorOf(const std::string& layers, const std::string& more = "")
{
    const Expected<Plan> plan = readPlan(planOf(layers, more));
    return plan.ok() ? "no error" : plan.error().message;
}

TEST(PlanModel, KeepsEveryLayer)
{
    Plan plan;
    plan.pipeline.ranks = 1;
    const auto expectKept = [&](ModelSpec model) {
        plan.model = std::move(model);
        const std::string text = writePlan(plan);
        const Expected<Plan> read = readPlan(text);
        ASSERT_TRUE(read.ok()) << read.error().message << "\n" << text;
        EXPECT_EQ(read.value(), plan) << text;
    };
    const TransformerBlock modern{
        .dim = 24, .heads = 6, .ffn = 40, .keyValueHeads = 2, .positions = Positions::Rotary, .feedForward = FeedForward::SwiGlu};
    expectKept({.layers = {Embedding{50, 16, 24, Positions::Rotary}, modern, modern, Head{24, 50}}, .loss = Loss::CrossEntropy});
    expectKept({.layers = {Convolution{.in = 3, .out = 6, .kernel = 5, .stride = 2, .groups = 3},
                           ResidualBlock{.in = 6, .out = 12, .stride = 2, .groups = 4}, Dropout{0.25}, PooledHead{12, 5}, Dropout{}},
                .image = ImageSize{3, 17, 19},
                .loss = Loss::CrossEntropy,
                .microbatchRows = 4});
    expectKept({.layers = {TorchScript{.file = "/a/b.pt", .in = {16}, .out = {4, 6}, .vocabulary = 9, .parameters = 5, .flops = 1.5e3, .activationBytes = 12},
                           TorchScript{.file = "/a/c.pt", .in = {4, 6}, .out = {8}, .parameters = 1},
                           Synthetic{.in = 8, .out = 2, .flops = 1e9, .activationBytes = 1 << 20, .parameters = 1000}, Synthetic{.in = 2, .out = 2}}});
}

TEST(PlanModel, SaysWhatIsWrongWithALayer)
{
    EXPECT_THAT(errorOf(R"({"type":"conv"})"), HasSubstr("model.layers[0].type: \"conv\" is not allowed; one of \"linear\", \"embedding\", "
                                                         "\"transformer_block\", \"head\", \"convolution\""));
    EXPECT_THAT(errorOf(R"({"type":"torchscript","file":"a.pt","in":[4],"out":[4]})"), HasSubstr("model.layers[0].parameters: is missing"));
    EXPECT_THAT(errorOf(R"({"type":"torchscript","file":"a.pt","in":[4.5],"out":[4],"parameters":1})"),
                HasSubstr("model.layers[0].in[0]: 4.5 is not allowed"));
    EXPECT_THAT(errorOf(R"({"type":"synthetic","in":4,"out":4,"parameters":0})"), HasSubstr("parameters: 0 is not allowed; a whole number from 1"));
    EXPECT_THAT(errorOf(R"({"type":"embedding","vocabulary":9,"sequence":4,"dim":4,"positions":"sine"})"),
                HasSubstr("positions: \"sine\" is not allowed; one of \"learned\", \"rotary\""));
    EXPECT_THAT(errorOf(R"({"type":"linear","in":4,"out":4,"heads":2})"), HasSubstr("model.layers[0].heads: this key is not known"));
    EXPECT_THAT(errorOf(R"({"type":"convolution","in":1,"out":8})", R"("image":{"channels":1,"height":8},)"), HasSubstr("model.image.width: is missing"));
    EXPECT_EQ(errorOf(R"({"type":"convolution","in":1,"out":8})", R"("image":{"channels":1,"height":8,"width":8},)"), "no error");
}

// A folder with a plan and its files can be moved as a whole.
// As Megatron-LM counts them for Adam: 16 bytes in float32, and 18 in bfloat16 with float32 sums of gradients (a weight, its gradient, its
// main copy and two moments).
TEST(PlanModel, HoldsTheBytesOfEachWeightOfItsPrecision)
{
    Plan plan;
    plan.pipeline.ranks = 1;
    plan.model = {.layers = {Linear{16, 32}, Linear{32, 8}}, .microbatchRows = 4};
    const std::int64_t parameters = 16 * 32 + 32 + 32 * 8 + 8;
    const auto bytesEach = [&](Precision precision, OptimizerKind optimizer) {
        plan.run.precision = precision;
        plan.run.optimizer = optimizer;
        const StageCosts stage = costsOf(plan).value().stages.front();
        EXPECT_EQ(stage.gradientBytes, 4 * parameters);
        return static_cast<double>(stage.weightBytes + stage.gradientBytes + stage.optimizerBytes) / static_cast<double>(parameters);
    };
    EXPECT_EQ(bytesEach(Precision::Fp32, OptimizerKind::Adam), 16);
    EXPECT_EQ(bytesEach(Precision::Bf16, OptimizerKind::Adam), 18);
    EXPECT_EQ(bytesEach(Precision::Fp32, OptimizerKind::Sgd), 8);
    EXPECT_EQ(bytesEach(Precision::Bf16, OptimizerKind::Sgd), 10);
    // what goes between stages and what comes in
    plan.pipeline.ranks = 2;
    EXPECT_EQ(costsOf(plan).value().stages[0].outputBytes, 2 * 4 * 32);
    EXPECT_EQ(costsOf(plan).value().stages[0].inputBytes, 2 * 4 * 16);
    EXPECT_EQ(costsOf(plan).value().stages[1].inputBytes, 2 * 4 * 32);
}

TEST(PlanFiles, AreSeenFromThePlansFolder)
{
    const traces::test::TemporaryFolder folder;
    const std::filesystem::path file = folder.file("a.plan.json");
    traces::test::spill(file, planOf(R"({"type":"torchscript","file":"stages/../s.pt","in":[4],"out":[4],"parameters":1},
                                        {"type":"torchscript","file":"/far/t.pt","in":[4],"out":[4],"parameters":1})"));
    const Plan plan = loadPlan(file).value();
    EXPECT_EQ(std::get<TorchScript>(plan.model.layers[0]).file, folder.file("s.pt").string());
    EXPECT_EQ(std::get<TorchScript>(plan.model.layers[1]).file, "/far/t.pt");
    ASSERT_TRUE(savePlan(plan, folder.file("b.plan.json")).ok());
    EXPECT_EQ(loadPlan(folder.file("b.plan.json")).value(), plan);
    const Plan seen = withPathsSeenFrom(plan, folder.file("").parent_path());
    EXPECT_EQ(std::get<TorchScript>(seen.model.layers[0]).file, "s.pt");
    EXPECT_EQ(std::get<TorchScript>(seen.model.layers[1]).file, "/far/t.pt");
}

// Stages of a ResNet are uneven in both directions: what the first keep is much, and what they weigh is little.
TEST(PlanModel, HasUnevenStagesInAResNet)
{
    const Plan plan = presetPlan("resnet").value();
    const std::vector<StageCosts> stages = costsOf(plan).value().stages;
    EXPECT_GT(stages.front().activationBytes, 4 * stages.back().activationBytes);
    EXPECT_GT(stages.back().weightBytes, 4 * stages.front().weightBytes);
}

} // namespace
