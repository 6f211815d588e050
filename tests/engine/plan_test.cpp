// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan_json.h"
#include "engine/schedule/shard.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"
#include "traces/base/utf8.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

using namespace stagecraft;
using namespace stagecraft::engine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

std::string errorOf(std::string_view json)
{
    Expected<Plan> plan = readPlan(json);
    return plan.ok() ? "no error" : plan.error().message;
}

class Preset : public ::testing::TestWithParam<PresetPlan> {};

TEST_P(Preset, OpensAndSimulates)
{
    const Plan plan = presetPlan(GetParam().name).value();
    EXPECT_EQ(plan.name, GetParam().name);
    EXPECT_FALSE(plan.description.empty());
    const Schedule schedule = scheduleOf(plan).value();
    const traces::Trace trace = simulate(schedule, costsOf(plan).value()).value();
    EXPECT_EQ(trace.info.ranks, plan.pipeline.ranks);
    EXPECT_TRUE(traces::stepFigures(trace, traces::Step{0}).ok());
}

TEST_P(Preset, SurvivesWritingAndReading)
{
    const Plan plan = presetPlan(GetParam().name).value();
    const std::string text = writePlan(plan);
    EXPECT_EQ(readPlan(text).value(), plan);
    EXPECT_EQ(writePlan(readPlan(text).value()), text);
}

TEST_P(Preset, IsTheFileOfTheResources)
{
    const auto file = std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "resources/plans" / (GetParam().name + ".plan.json");
    EXPECT_EQ(loadPlan(file).value(), presetPlan(GetParam().name).value());
}

INSTANTIATE_TEST_SUITE_P(All, Preset, ::testing::ValuesIn(presetPlans()), [](const auto& test) {
    std::string name = test.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

TEST(PresetFigures, AreThoseTheirDescriptionsState)
{
    const auto figuresOf = [](const Plan& plan) {
        const traces::Trace trace = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
        return traces::stepFigures(trace, traces::Step{0}).value();
    };
    EXPECT_DOUBLE_EQ(figuresOf(presetPlan("twelve-layers").value()).bubbleMakespan, 0.375);
    EXPECT_DOUBLE_EQ(figuresOf(presetPlan("eight-by-seventy").value()).bubbleMakespan, 7.0 / 77);
    EXPECT_EQ(figuresOf(presetPlan("imbalanced").value()).makespan, 42'000'000);
}

TEST(PlanJson, KeepsEveryValue)
{
    Plan plan;
    plan.name = "all \"values\" — ü";
    plan.description = "line\nbreak";
    plan.model.layers = {Linear{4, 8, Activation::Gelu}, Linear{8, 8}, Linear{8, 8}, Linear{8, 2, Activation::Relu}};
    plan.model.microbatchRows = 3;
    plan.partition = {1, 1, 1, 1};
    plan.pipeline = {"interleaved", 2, 2, 4, ""};
    plan.pipeline.group = 4;
    plan.pipeline.sharding = Sharding::Zero3;
    plan.pipeline.concatenation = Concatenation::Halving;
    plan.pipeline.offload = 0.25;
    plan.pipeline.verticalSync = true;
    plan.pipeline.memoryLimit = 12'345; // waits for a schedule that plans by it
    plan.costs.source = CostSource::Measured;
    plan.costs.inputGrad = 5;
    plan.costs.weightGrad = 7;
    plan.costs.backward = 5 + 7;
    plan.costs.overlap = 123'456'789;
    plan.costs.stageScale = {1, 1.25, 0.5, 2};
    plan.costs.activationBytes = 1025;
    plan.costs.wgradBytes = 513;
    plan.costs.flopsPerSecond = 1.23e12;
    plan.costs.measured.resize(4);
    plan.costs.measured[2] = {.forward = 1, .backward = 2, .inputGrad = 3, .weightGrad = 4, .overlap = 5, .optimizer = 6,
                              .activationBytes = 7, .wgradBytes = 8, .weightBytes = 9, .gradientBytes = 10, .optimizerBytes = 11};
    plan.costs.measuredFrom = "a run";
    plan.costs.latency = 1500;
    plan.costs.bandwidth = 25e9;
    plan.costs.boundaryBytes = 12;
    plan.costs.jitter = 0.05;
    plan.costs.seed = 18'446'744'073'709'551'615ULL;
    plan.run = {RunMode::Emulated, DeviceKind::Cpu, Precision::Bf16, 7, CheckMode::All, OptimizerKind::Momentum, 0.01, 99, 0.8, 0.1, RateCourse::Linear, 3};
    plan.run.clipNorm = 0.75;
    plan.run.lossScale = 1024;
    plan.run.checkpoint = "runs/a";
    plan.run.checkpointEvery = 100;
    plan.run.resume = "runs/b/step-0000010";
    plan.run.activations = ActivationAccount::SavedTensors;
    plan.run.handoff = HandoffKind::Semaphore;
    plan.run.handoffDepth = 3;
    plan.run.transport = Transport::Host;
    plan.run.slowdown = {1, 2.5, 1, 1000};
    plan.run.device = DeviceKind::Cuda;
    plan.run.gpus = {1, kOnCpu};
    plan.run.tf32 = true;
    plan.run.tracing = traces::TraceLevel::Kernels;
    const std::string text = writePlan(plan);
    Expected<Plan> read = readPlan(text);
    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << text;
    EXPECT_EQ(read.value(), plan);
}

// Four steps of warm-up to 8, then four down to nothing.
TEST(RunSpec, TellsTheRateOfEachStep)
{
    RunSpec run{.steps = 8, .learningRate = 8, .warmupSteps = 4};
    const auto rates = [&](RateCourse course) {
        run.rateCourse = course;
        std::vector<double> all;
        for (int step = 0; step < run.steps; ++step) all.push_back(run.rateOf(step));
        return all;
    };
    EXPECT_THAT(rates(RateCourse::Constant), ElementsAre(2, 4, 6, 8, 8, 8, 8, 8));
    EXPECT_THAT(rates(RateCourse::Linear), ElementsAre(2, 4, 6, 8, 8, 6, 4, 2));
    const std::vector<double> cosine = rates(RateCourse::Cosine);
    EXPECT_DOUBLE_EQ(cosine[4], 8);
    EXPECT_NEAR(cosine[6], 4, 1e-12); // half of the way
    run.warmupSteps = 100;            // more than there are steps
    EXPECT_DOUBLE_EQ(run.rateOf(7), 0.64);
}

TEST(PlanJson, KeepsACustomSchedule)
{
    Plan plan;
    plan.pipeline = {"custom", 2, 1, 1, "0F0,0B0\n1F0,1B0\n"};
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);
    EXPECT_EQ(toText(scheduleOf(plan).value()), plan.pipeline.customSchedule);
}

TEST(PlanJson, KeepsTheMachine)
{
    Plan plan;
    plan.machine.ranksPerNode = 2;
    plan.machine.between = {.latency = 10'000, .bytesPerSecond = 25e9};
    plan.machine.transfers = TransferPlace::CopyLane;
    plan.machine.sharedLinks = true;
    plan.machine.send = SendMode::Rendezvous;
    plan.machine.rankScale = {1, 1.5, 1, 0.25};
    plan.machine.lateStart = {0, 0, 5'000'000, 0};
    plan.machine.memory = Bytes{80} << 30;
    plan.machine.host = {.latency = 20'000, .bytesPerSecond = 50e9};
    plan.machine.replicas = 8;
    plan.machine.replica = {.latency = 5'000, .bytesPerSecond = 100e9};
    plan.machine.bucketBytes = 1 << 20;
    plan.machine.barrier = true;
    plan.costs.boundaryBytes = 100;
    plan.costs.optimizer = 3'000'000;
    plan.pipeline.recompute = Recompute::Full;
    const Expected<Plan> again = readPlan(writePlan(plan));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value(), plan);
    EXPECT_EQ(costsOf(plan).value().machine, plan.machine);
    EXPECT_EQ(costsOf(plan).value().stages[2].optimizer, 3'000'000);
    EXPECT_TRUE(withShape(plan, 2, 1).machine.rankScale.empty()) << "of other ranks";
    EXPECT_EQ(writePlan(Plan{}).find("machine"), std::string::npos);
}

TEST(PlanJson, NamesKeyValueAndWhatIsAllowed)
{
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"ranks":-2}})"),
                HasSubstr("pipeline.ranks: -2 is not allowed; a whole number from 1 to 16384"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"ranks":4.5}})"), HasSubstr("pipeline.ranks: 4.5"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"ranks":99999999999999999999}})"), HasSubstr("pipeline.ranks"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"rank":4}})"),
                HasSubstr("pipeline.rank: this key is not known; known here are chunks"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"colour":4})"), HasSubstr("colour: this key is not known"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":2})"), HasSubstr("stagecraft_plan: 2 is not allowed"));
    EXPECT_THAT(errorOf(R"({"name":"x"})"), HasSubstr("stagecraft_plan: is missing"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"forward":"1"}})"), HasSubstr("costs.forward: \"1\" has no unit"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"forward":3}})"), HasSubstr("costs.forward: must be a text"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"mode":"fast"}})"),
                HasSubstr("run.mode: \"fast\" is not allowed; one of \"threads\", \"emulated\""));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"clip_norm":-1}})"), HasSubstr("run.clip_norm: -1 is not allowed"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"loss_scale":3}})"), HasSubstr("run.loss_scale: 3 is not allowed; a power of two from 1 to 2^60"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"loss_scale":0}})"), HasSubstr("run.loss_scale: 0 is not allowed"));
    for (const char* wrong : {"0.5", "-2", "2305843009213693952", "\"8\""}) // 2^61 the third
        EXPECT_THAT(errorOf(fmt::format(R"({{"stagecraft_plan":1,"run":{{"loss_scale":{}}}}})", wrong)), HasSubstr("a power of two from 1 to 2^60")) << wrong;
    for (const char* right : {"1", "2.0", "1152921504606846976"})
        EXPECT_EQ(errorOf(fmt::format(R"({{"stagecraft_plan":1,"run":{{"loss_scale":{}}}}})", right)), "no error") << right;
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"checkpoint_every":-1}})"), HasSubstr("run.checkpoint_every: -1 is not allowed"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"handoff_depth":2}})"), HasSubstr("run.handoff_depth: 2 is not allowed with handoff boxes"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"slowdown":[1,2]}})"), HasSubstr("run.slowdown: 2 factors given, and the plan has 4 stages"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"slowdown":[1,0.5,1,1]}})"), HasSubstr("run.slowdown[1]: 0.5 is not allowed"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"device":"cuda","gpus":[0,"gpu",1,1]}})"),
                HasSubstr("run.gpus[1]: \"gpu\" is not allowed; the number of a GPU from 0 to 127, or \"cpu\""));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"device":"cuda","gpus":[0,1]}})"), HasSubstr("run.gpus: 2 numbers given, and the plan has 4 ranks"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"machine":{"replicas":2},"run":{"device":"cuda","gpus":[0,1,0,1]}})"),
                HasSubstr("run.gpus: 4 numbers given, and the plan has 2 replicas of 4 ranks: one for each, replica by replica"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"run":{"gpus":[0,1,0,1]}})"), HasSubstr("run.gpus: the GPUs of a run on the device cpu are not told"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"model":{"layers":[{"type":"conv"}]}})"),
                HasSubstr("model.layers[0].type: \"conv\" is not allowed"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"model":{"layers":[{"type":"linear","in":4}]}})"),
                HasSubstr("model.layers[0].out: is missing"));
    EXPECT_THAT(errorOf("[1,2]"), HasSubstr("must be an object"));
}

TEST(PlanJson, TellsLineAndColumnOfWhatIsNoJson)
{
    EXPECT_THAT(errorOf("{\n  \"stagecraft_plan\": 1,\n  oops\n}"), HasSubstr("line 3, column 3"));
    EXPECT_THAT(errorOf("{\"name\": \"\xc3\xa9\", \xc3\xa9}"), HasSubstr("line 1, column 16: this is not JSON (invalid literal)")); // an é alone
    EXPECT_THAT(errorOf(R"({"name": "a" "b"})"), HasSubstr("line 1, column 16: this is not JSON (unexpected string literal; expected '}')"));
    const std::string escaped = "{\"name\": \"" + std::string(100, 'x') + "\\q\"}";
    EXPECT_THAT(errorOf(escaped), testing::AllOf(HasSubstr("forbidden character after backslash"), testing::Not(HasSubstr("xx"))));
}

TEST(PlanJson, TellsAnEmptyFileFromOneThatIsCutOffOrOfAnotherEncoding)
{
    for (const char* empty : {"", " \n\t"}) EXPECT_THAT(errorOf(empty), HasSubstr("it is empty"));
    EXPECT_THAT(errorOf("{\n  \"stagecraft_plan\": 1"), HasSubstr("it ends too early (line 2, column 22)"));
    for (const char* cut : {"{", "{\"name\":", "{\"name\": \"x", "{\"a\": tru", "{\"a\": [1,", "{\"name\": \"caf\xc3"})
        EXPECT_THAT(errorOf(cut), HasSubstr("it ends too early (line 1, ")) << cut;
    EXPECT_THAT(errorOf("{\"name\":\n\"caf\xe9\"}"), HasSubstr("it is not UTF-8 (byte 13, line 2, column 5)"));
    EXPECT_THAT(errorOf("\xff\xfe{"), HasSubstr("it is not UTF-8 (byte 0, line 1, column 1)")); // UTF-16
    EXPECT_THAT(errorOf("{\"name\": oops, \"description\": \"caf\xe9\"}"), HasSubstr("line 1, column 10: this is not JSON")) << "what comes first";
    for (const std::string wrong : {"{\"name\": \"caf\xe9\"}", "{\"na\xe9\": 1}", "\x80", "{\"a\": \xe9}", "{\"a\": 1} \xe9"})
        EXPECT_EQ(traces::firstBrokenByte(errorOf(wrong)), std::string::npos) << "its bytes are not repeated";
}

// Not that there is no model, nor what then lacks one.
TEST(PlanJson, SaysThatAModelHasNoLayers)
{
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"model":{"layers":[]},"partition":[1,1]})"), HasSubstr("model.layers: the list is empty; give the layers"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"model":{"layers":[]},"costs":{"source":"model"}})"), HasSubstr("model.layers: the list is empty"));
}

TEST(PlanJson, RefusesAKeyThatStandsTwice)
{
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"ranks":2,"chunks":1,"ranks":3}})"),
                HasSubstr("the key \"ranks\" stands twice"));
    EXPECT_EQ(errorOf(R"({"stagecraft_plan":1,"model":{"layers":[{"type":"linear","in":4,"out":4},
                          {"type":"linear","in":4,"out":4}]},"pipeline":{"ranks":2}})"),
              "no error");
}

TEST(PlanJson, MakesTheBackwardOfASplitPlanTheSum)
{
    const Expected<Plan> read = readPlan(R"({"stagecraft_plan":1,"costs":{"input_grad":"3ms","weight_grad":"1ms"}})");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().costs.backward, 4'000'000);
    Plan inconsistent = read.value();
    inconsistent.costs.backward = 1; // as an editor may leave it that changed the parts alone
    EXPECT_EQ(readPlan(writePlan(inconsistent)).value(), read.value());
}

TEST(PlanJson, RefusesWhatWouldOverflowAParser)
{
    const std::string deep(300'000, '[');
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":)" + deep + std::string(deep.size(), ']') + "}"),
                HasSubstr("nested deeper than 64 levels"));
    EXPECT_THAT(errorOf(deep), HasSubstr("nested deeper than 64 levels"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":[[1]]})"), HasSubstr("stagecraft_plan: a list is not allowed"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"jitter":1e999}})"), HasSubstr("number overflow parsing '1e999'"));
}

TEST(PlanJson, ChecksWhatBelongsTogether)
{
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"partition":[1,1]})"), HasSubstr("partition: there is no model"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"schedule":"interleaved","ranks":4,"chunks":2,"microbatches":9}})"),
                HasSubstr("nearest number that fits is 8"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"stage_scale":[1,2]}})"), HasSubstr("2 entries, the plan has 4 stages"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"source":"model"}})"), HasSubstr("needs a model"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"bandwidth":"1GB/s"}})"), HasSubstr("boundary_bytes"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"input_grad":"1ms"}})"), HasSubstr("together"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"costs":{"backward":"3ms","input_grad":"1ms","weight_grad":"1ms"}})"),
                HasSubstr("costs.backward: 3ms is not the sum of input_grad and weight_grad, 2ms"));
    EXPECT_EQ(errorOf(R"({"stagecraft_plan":1,"costs":{"backward":"2ms","input_grad":"1ms","weight_grad":"1ms"}})"), "no error");
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"schedule":"custom","custom_schedule":"0F0,0B0"}})"),
                HasSubstr("the plan says 4, but its custom schedule has 1"));
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"schedule":"custom","ranks":2,"custom_schedule":"0F0,0B0\n,\n"}})"),
                HasSubstr("rank 0 holds 1 stage and rank 1 holds 0; a plan needs"));
}

TEST(PlanJson, RefusesPartitionsThatOnlyFitWhenTheirSumOverflows)
{
    Plan plan;
    plan.model.layers.assign(7, Linear{4, 4});
    plan.pipeline.ranks = 4097;
    plan.partition.assign(4096, 1 << 20);
    plan.partition.push_back(7); // 2^32 + 7
    EXPECT_THAT(checkPlan(plan).error().message, HasSubstr("it gives out 4294967303 layers, the model has 7"));
}

TEST(PlanSchedule, IsPlannedByTheCostsAndTheLimitOfThePlan)
{
    Plan plan;
    plan.pipeline = {"zb-auto", 4, 1, 8, ""};
    plan.costs.activationBytes = 2048;
    plan.costs.wgradBytes = 1024;
    const auto spanBubble = [&] {
        const traces::Trace trace = simulate(scheduleOf(plan).value(), costsOf(plan).value()).value();
        return traces::stepFigures(trace, traces::Step{0}).value().bubbleSpan;
    };
    EXPECT_NEAR(spanBubble(), 1.0 / 9, 1e-12); // ZB-1p: 27 slots for 24
    plan.pipeline.memoryLimit = Bytes{2} * 4 * 2048;
    EXPECT_DOUBLE_EQ(spanBubble(), 0); // ZB-2p
    EXPECT_TRUE(checkPlan(plan).ok());
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);

    plan.costs.stageScale = {1, 1, 3, 1};
    EXPECT_NE(toText(scheduleOf(plan).value()), toText(generate({.name = "zb-auto", .ranks = 4, .microbatches = 8}).value()));

    plan.pipeline.memoryLimit = 2047;
    EXPECT_THAT(checkPlan(plan).error().message, HasSubstr("one micro-batch already keeps 2 KiB"));
    EXPECT_EQ(scheduleOf(plan).error().message, checkPlan(plan).error().message);
    plan.pipeline.schedule = "1f1b"; // does not go by it
    EXPECT_TRUE(checkPlan(plan).ok());
}

TEST(PlanSchedule, GoesInGroupsOfThePlansSize)
{
    Plan plan;
    plan.pipeline = {"interleaved", 2, 2, 5, ""};
    plan.pipeline.group = 3;
    EXPECT_EQ(scheduleOf(plan).value(),
              generate({.name = "interleaved", .ranks = 2, .chunks = 2, .microbatches = 5, .group = 3}).value());
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);
    plan.pipeline.group = 6;
    EXPECT_THAT(checkPlan(plan).error().message, HasSubstr("groups of 6 micro-batches are not allowed, a group takes 2 to 5"));
    plan.pipeline.schedule = "looped-bfs"; // does not go by it
    EXPECT_TRUE(checkPlan(plan).ok());
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"group":-1}})"), HasSubstr("pipeline.group: -1 is not allowed"));
}

TEST(PlanSchedule, DividesWhatThePlanSays)
{
    Plan plan;
    plan.pipeline = {"looped-bfs", 2, 2, 4, ""};
    const Schedule plain = scheduleOf(plan).value();
    plan.pipeline.sharding = Sharding::Zero1; // costs alone
    EXPECT_EQ(scheduleOf(plan).value(), plain);
    EXPECT_EQ(costsOf(plan).value().sharding, Sharding::Zero1);
    plan.pipeline.sharding = Sharding::Zero3;
    EXPECT_EQ(scheduleOf(plan).value(), shard(plain, Sharding::Zero3));
    EXPECT_TRUE(simulate(scheduleOf(plan).value(), costsOf(plan).value()).ok());
    Plan custom = withCustomSchedule(plan, "0F0,0B0\n1F0,1B0\n").value();
    EXPECT_EQ(toText(scheduleOf(custom).value()), "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n1UNSHARD,1F0,1B0,1REDUCE_GRAD,1RESHARD\n");
    plan.pipeline = {"pipedream", 2, 1, 4, ""};
    plan.pipeline.sharding = Sharding::Zero2;
    EXPECT_THAT(checkPlan(plan).error().message, HasSubstr("schedule pipedream updates its weights within a step"));
    EXPECT_FALSE(scheduleOf(plan).ok());
    EXPECT_THAT(errorOf(R"({"stagecraft_plan":1,"pipeline":{"sharding":"zero4"}})"), HasSubstr("\"zero4\" is not allowed"));
}

TEST(PlanFile, NamesTheFileOfAnError)
{
    EXPECT_THAT(loadPlan("/nonexistent/plan.json").error().message, HasSubstr("cannot read /nonexistent/plan.json: it does not exist"));
    EXPECT_THAT(loadPlan(std::filesystem::temp_directory_path()).error().message, HasSubstr("it is a folder"));
    EXPECT_THAT(savePlan(Plan{}, "/nonexistent/plan.json").error().message, HasSubstr("/nonexistent/plan.json"));
}

TEST(PlanFile, IsReplacedAsAWhole)
{
    const auto file = std::filesystem::temp_directory_path() / "stagecraft-plan-test.json";
    const Plan plan = presetPlan("hello").value();
    ASSERT_TRUE(savePlan(plan, file).ok());
    EXPECT_EQ(loadPlan(file).value(), plan);
    EXPECT_FALSE(std::filesystem::exists(file.string() + ".part"));
    std::filesystem::remove(file);
}

TEST(PlanCosts, DivideARanksTimeAmongItsChunks)
{
    Plan plan;
    plan.pipeline = {"interleaved", 4, 2, 8, ""};
    plan.costs.forward = 2'000'000;
    plan.costs.backward = 4'000'000;
    const CostTable costs = costsOf(plan).value();
    ASSERT_EQ(costs.stages.size(), 8U);
    EXPECT_EQ(costs.stages[5].forward, 1'000'000);
    EXPECT_EQ(costs.stages[5].backward, 2'000'000);
    EXPECT_EQ(costs.stages[5].inputGrad, 1'000'000);
    EXPECT_EQ(costs.stages[5].overlap, 3'000'000);
}

// A slice takes and sends its part; the parts of a backward stay its parts however they are rounded.
TEST(PlanCosts, DivideAMicroBatchAmongItsSlices)
{
    Plan plan;
    plan.pipeline.schedule = "seq1f1b";
    plan.pipeline.microbatches = 4;
    plan.pipeline.slices = 3;
    plan.costs.forward = 3000;
    plan.costs.backward = 5000;
    plan.costs.overlap = 6000;
    plan.costs.activationBytes = 900;
    plan.costs.latency = 10;
    plan.costs.bandwidth = 1e9;
    plan.costs.boundaryBytes = 300;
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);
    const CostTable costs = costsOf(plan).value();
    EXPECT_EQ(costs.stages[2].forward, 1000);
    EXPECT_EQ(costs.stages[2].backward, 1667);
    EXPECT_EQ(costs.stages[2].inputGrad + costs.stages[2].weightGrad, 1667);
    EXPECT_EQ(costs.stages[2].overlap, 2000);
    EXPECT_EQ(costs.stages[2].activationBytes, 300);
    EXPECT_EQ(costs.transfer, 110);
    EXPECT_EQ(scheduleOf(plan).value().slices, 3);

    const Plan custom = withCustomSchedule(Plan{}, toText(scheduleOf(plan).value())).value();
    EXPECT_EQ(custom.pipeline.slices, 3);
    EXPECT_EQ(custom.pipeline.microbatches, 4);
    plan.pipeline.schedule = "1f1b";
    EXPECT_THAT(checkPlan(plan).error().message, HasSubstr("use 1 slice, or seq1f1b"));
}

TEST(PlanCosts, MakeTheBackwardTheSumOfItsParts)
{
    Plan plan;
    plan.costs.inputGrad = 700;
    plan.costs.weightGrad = 300;
    const CostTable costs = costsOf(plan).value();
    EXPECT_EQ(costs.stages[0].backward, 1000);
    EXPECT_EQ(costs.stages[0].weightGrad, 300);
}

TEST(PlanCosts, AddLatencyAndBytesOverBandwidth)
{
    Plan plan;
    plan.costs.latency = 10'000;
    plan.costs.bandwidth = 1e9;
    plan.costs.boundaryBytes = 5'000; // 5 us at 1 GB/s
    EXPECT_EQ(costsOf(plan).value().transfer, 15'000);
    plan.costs.boundaryBytes = 0;
    plan.model = presetPlan("hello").value().model; // boundary 8 x 2048 floats
    plan.pipeline.ranks = 2;
    EXPECT_EQ(costsOf(plan).value().transfer, 10'000 + 65'536);
}

TEST(PlanCosts, KnowWhatEachStageTakesAndHandsOver)
{
    Plan plan = presetPlan("hello").value(); // 8 rows of 1024, 2048, 1024 floats
    CostTable costs = costsOf(plan).value();
    EXPECT_EQ(costs.stages[0].inputBytes, 8 * 1024 * 4);
    EXPECT_EQ(costs.stages[0].outputBytes, 8 * 2048 * 4);
    EXPECT_EQ(costs.stages[1].inputBytes, 8 * 2048 * 4);
    EXPECT_EQ(costs.stages[1].outputBytes, 0) << "nobody comes after it";
    plan.costs.boundaryBytes = 64;
    costs = costsOf(plan).value();
    EXPECT_EQ(costs.stages[0].outputBytes, 64);
    EXPECT_EQ(costs.stages[1].outputBytes, 0);
}

TEST(PlanCosts, EstimateTimesFromFlops)
{
    Plan plan = presetPlan("hello").value();
    plan.costs.flopsPerSecond = 1e9;
    const CostTable costs = costsOf(plan).value();
    EXPECT_EQ(costs.stages[0].forward, 2LL * 8 * 1024 * 2048);
    EXPECT_EQ(costs.stages[0].backward, 4LL * 8 * 1024 * 2048);
    EXPECT_EQ(costs.stages[0].weightBytes, 4 * 2'099'200);
    EXPECT_EQ(costs.stages[0].optimizerBytes, 8 * 2'099'200);
    EXPECT_THAT(costs.origin, HasSubstr("estimated from the model at 1 GFLOP/s"));
}

TEST(PlanCosts, RefuseTimesThatOverflow)
{
    Plan plan;
    plan.costs.forward = 9'000'000'000'000'000'000;
    EXPECT_THAT(costsOf(plan).error().message, HasSubstr("costs: forward comes to 9e+09 s; at most 1e+06 s is allowed"));
    plan = Plan{};
    plan.costs.inputGrad = 9'000'000'000'000'000'000;
    plan.costs.weightGrad = 9'000'000'000'000'000'000;
    EXPECT_THAT(costsOf(plan).error().message, HasSubstr("costs: input_grad comes to"));
    plan = Plan{};
    plan.costs.latency = 9'000'000'000'000'000'000;
    EXPECT_THAT(costsOf(plan).error().message, HasSubstr("costs: latency comes to"));
    plan = Plan{};
    plan.costs.stageScale = {1e6, 1, 1, 1};
    plan.costs.forward = 1'000'000'000'000;
    EXPECT_THAT(costsOf(plan).error().message, HasSubstr("forward of stage 0"));
    plan = Plan{};
    plan.costs.activationBytes = traces::Bytes{1} << 61;
    EXPECT_THAT(costsOf(plan).error().message, HasSubstr("activation_bytes is 2305843009213693952 bytes"));
}

TEST(PlanCosts, RefuseAWeightGradientThatKeepsMoreThanTheForward)
{
    Plan plan;
    plan.costs.activationBytes = 1 << 20;
    plan.costs.wgradBytes = 1 << 21;
    EXPECT_THAT(costsOf(plan).error().message, HasSubstr("2 MiB of stage 0 would stay until its weight gradient"));
}

TEST(PlanCosts, ScaleTheTimesOfAModelAndOfARun)
{
    Plan plan = presetPlan("gpt-small").value();
    const CostTable plain = costsOf(plan).value();
    plan.costs.stageScale = {1, 2.5};
    plan.costs.overlap = 77;
    const CostTable scaled = costsOf(plan).value();
    EXPECT_EQ(scaled.stages[0].forward, plain.stages[0].forward);
    EXPECT_EQ(scaled.stages[0].overlap, 77);
    EXPECT_NEAR(static_cast<double>(scaled.stages[1].backward), 2.5 * static_cast<double>(plain.stages[1].backward), 0.5);
    EXPECT_EQ(scaled.stages[1].inputGrad + scaled.stages[1].weightGrad, scaled.stages[1].backward);
    EXPECT_THAT(scaled.origin, HasSubstr("scaled by stage"));

    plan.costs.overlap.reset();
    plan.costs.source = CostSource::Measured;
    plan.costs.measured.resize(2, {.forward = 10, .backward = 20, .inputGrad = 8, .weightGrad = 12, .overlap = 30});
    const StageCosts second = costsOf(plan).value().stages[1];
    EXPECT_EQ(second.forward, 25);
    EXPECT_EQ(second.backward, 50);
    EXPECT_EQ(second.inputGrad, 20);
    EXPECT_EQ(second.weightGrad, 30);
    EXPECT_EQ(second.overlap, 75);
}

TEST(PlanShape, DropsWhatNoLongerFits)
{
    Plan plan = presetPlan("imbalanced").value();
    EXPECT_EQ(withShape(plan, 4, 1), plan);
    const Plan wider = withShape(plan, 8, 1);
    EXPECT_TRUE(wider.costs.stageScale.empty());
    EXPECT_TRUE(checkPlan(wider).ok());
    Plan handMade = presetPlan("mlp").value();
    handMade.partition = {5, 1, 1, 1};
    const Plan folded = withShape(handMade, 2, 2); // as many stages, but other ones
    EXPECT_TRUE(folded.partition.empty());
    Plan gpt = withShape(presetPlan("gpt-small").value(), 4, 1);
    EXPECT_TRUE(gpt.partition.empty());
    EXPECT_EQ(partitionOf(gpt).value().size(), 4U);
}

} // namespace
