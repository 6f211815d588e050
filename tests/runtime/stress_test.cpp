// SPDX-License-Identifier: Apache-2.0
//
// Whatever can be put together runs with right gradients to its end, or ends at once where it is told to or breaks, and leaves a trace
// that fits its schedule. For longer: live_tests --gtest_filter='Seeds/*' --gtest_shuffle --gtest_repeat=100 draws other cases each
// time; without shuffling they are always the same.
#include "tests/engine/random_case.h"
#include "tests/runtime/run_plan.h"

#include "engine/runtime/runnable.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/offload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using traces::ActionKind;
using traces::Lane;
using traces::LaneKind;

class Draw {
public:
    explicit Draw(unsigned seed) : random_(seed) {}
    int among(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
    bool once(int in) { return among(1, in) == 1; }
    template <class T>
    T of(std::initializer_list<T> values)
    {
        return values.begin()[among(0, static_cast<int>(values.size()) - 1)];
    }
    std::mt19937& engine() { return random_; }

private:
    std::mt19937 random_;
};

ModelSpec transformer(Draw& draw, int layers)
{
    const int dim = 16;
    const auto positions = draw.of({Positions::Learned, Positions::Rotary});
    ModelSpec model{.layers = {Embedding{11, 8, dim, positions}}, .loss = Loss::CrossEntropy};
    for (int i = 2; i < layers; ++i)
        model.layers.emplace_back(TransformerBlock{.dim = dim, .heads = 2, .ffn = 24, .keyValueHeads = draw.of({0, 1}), .positions = positions,
                                                   .feedForward = draw.of({FeedForward::Gelu, FeedForward::SwiGlu})});
    model.layers.emplace_back(Head{dim, 11});
    model.tiedEmbeddings = draw.once(3);
    return model;
}

ModelSpec images(Draw& draw, int layers)
{
    ModelSpec model{.layers = {Convolution{.in = 1, .out = 8}}, .image = ImageSize{1, 6, 6}, .loss = Loss::CrossEntropy};
    for (int i = 2; i < layers; ++i) model.layers.emplace_back(ResidualBlock{.in = 8, .out = 8, .stride = draw.of({1, 1, 2})});
    model.layers.emplace_back(PooledHead{8, 5});
    return model;
}

ModelSpec vectors(Draw& draw, int layers)
{
    ModelSpec model;
    for (int i = 0; i < layers; ++i) {
        if (draw.once(3)) model.layers.emplace_back(Synthetic{.in = 12, .out = 12, .flops = 2e4, .activationBytes = 400, .parameters = 60});
        else model.layers.emplace_back(Linear{12, 12, draw.of({Activation::None, Activation::Relu, Activation::Gelu})});
    }
    return model;
}

// At least so many layers, for as many stages.
ModelSpec drawModel(Draw& draw, int stages, bool sequences)
{
    const int layers = std::max(2, stages + draw.among(0, 2));
    ModelSpec model;
    switch (sequences ? 0 : draw.among(0, 2)) {
    case 0: model = transformer(draw, layers); break;
    case 1: model = images(draw, layers); break;
    default: model = vectors(draw, layers);
    }
    if (draw.once(3)) model.layers.insert(model.layers.end() - 1, Dropout{draw.of({0.1, 0.5})});
    model.microbatchRows = 2 * draw.among(1, 2); // halves of micro-batches are whole rows
    return model;
}

RunSpec drawRun(Draw& draw, int steps)
{
    RunSpec run{.mode = draw.of({RunMode::Threads, RunMode::Emulated}), .steps = steps, .check = CheckMode::All};
    run.optimizer = draw.of({OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam, OptimizerKind::AdamW});
    run.rateCourse = draw.of({RateCourse::Constant, RateCourse::Linear, RateCourse::Cosine});
    run.warmupSteps = draw.among(0, 2);
    run.seed = static_cast<std::uint64_t>(draw.among(0, 1000));
    if (draw.once(4)) run.clipNorm = draw.of({0.1, 10.0});
    if (draw.once(4)) run.lossScale = 1024;
    run.handoff = draw.of({HandoffKind::Boxes, HandoffKind::Mutex, HandoffKind::Ring, HandoffKind::Semaphore});
    run.activations = draw.of({ActivationAccount::Allocator, ActivationAccount::SavedTensors});
    return run;
}

// Of the family whose turn it is; not all of them can run.
Plan drawPlan(Draw& draw, std::size_t turn, int steps)
{
    const Schedule drawn = test::drawSchedule(draw.engine(), turn, 4, 8);
    Plan plan;
    plan.pipeline = {.schedule = "custom", .ranks = drawn.ranks, .chunks = drawn.chunks, .microbatches = drawn.microbatches, .customSchedule = toText(drawn)};
    plan.pipeline.slices = drawn.slices;
    const ScheduleFamily& family = scheduleFamilies()[turn % scheduleFamilies().size()];
    if (draw.once(2) || drawn.twoDirections()) { // by its name, with the numbers that it takes
        plan.pipeline = {.schedule = family.name, .ranks = drawn.ranks, .chunks = drawn.chunks, .microbatches = drawn.microbatches, .customSchedule = {}};
        plan.pipeline.slices = drawn.twoDirections() ? 1 : drawn.slices;
        plan.pipeline.verticalSync = drawn.updates == UpdateRule::VerticalSync;
    }
    plan.pipeline.recompute = draw.of({Recompute::None, Recompute::None, Recompute::Full});
    plan.model = drawModel(draw, plan.stages(), drawn.slices > 1);
    if (drawn.slices > 1 && draw.once(2)) plan.pipeline.slicing = Slicing::Balanced;
    plan.costs.source = CostSource::Model;
    plan.machine.replicas = draw.of({1, 1, 2, 3});
    if (plan.machine.replicas > 1) {
        plan.machine.bucketBytes = draw.of<traces::Bytes>({1, 3000, 25 << 20});
        plan.pipeline.sharding = draw.of({Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3});
    }
    plan.run = drawRun(draw, steps);
    return plan;
}

// One that runs. What is refused says why.
Plan drawRunnable(Draw& draw, std::size_t turn, int steps)
{
    for (int tries = 0; tries < 100; ++tries) {
        const Plan plan = drawPlan(draw, turn, steps);
        const auto made = makeRunnable(plan, {});
        if (made.ok()) return plan;
        EXPECT_GT(made.error().message.size(), 20U);
    }
    ADD_FAILURE() << "nothing of " << scheduleFamilies()[turn % scheduleFamilies().size()].name << " runs";
    return {};
}

// Every action on its rank, at most once in a step, and all of them in each step but the rank's last.
void expectPartOf(const Outcome& outcome, const Plan& plan)
{
    const Schedule schedule = scheduleOf(plan).value();
    std::map<int, std::map<int, std::multiset<std::string>>> ran; // by rank, then step
    for (const Lane& lane : outcome.trace.lanes()) {
        if (lane.info().kind != LaneKind::Compute) continue;
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (lane.action(i).kind() != ActionKind::Optimizer && lane.action(i).kind() != ActionKind::None)
                ran[lane.info().rank.value][lane.step(i).value].insert(toText(lane.action(i)));
    }
    for (const auto& [rank, steps] : ran) {
        std::multiset<std::string> expected;
        for (const Action& action : schedule.order[static_cast<std::size_t>(rank % schedule.ranks)])
            forEachWork(action, [&](const traces::Work& work) {
                const ActionKind kind = work.kind;
                if (kind == ActionKind::Optimizer || isCopy(kind) || traces::isTransfer(kind)) return;
                if (kind == ActionKind::Unshard || kind == ActionKind::ReduceGrad) return; // beside
                expected.insert(toText(Action{work, {}}));
            });
        for (const auto& [step, actions] : steps) {
            EXPECT_TRUE(std::includes(expected.begin(), expected.end(), actions.begin(), actions.end())) << "rank " << rank << " step " << step;
            if (step != steps.rbegin()->first) {
                EXPECT_EQ(actions.size(), expected.size()) << "rank " << rank << " step " << step;
            }
        }
    }
    EXPECT_EQ(outcome.trace.lostEvents(), 0);
}

void expectTrained(const Outcome& outcome, const Plan& plan)
{
    ASSERT_EQ(outcome.last, SessionState::Finished) << (outcome.failure ? outcome.failure->text : "");
    ASSERT_TRUE(outcome.result);
    EXPECT_TRUE(outcome.result->gradientCheck == GradientCheck::Bitwise || outcome.result->gradientCheck == GradientCheck::Tolerance)
        << "largest difference " << outcome.result->gradientMaxAbsDiff;
    EXPECT_EQ(outcome.trace.steps().size(), static_cast<std::size_t>(plan.run.steps));
    for (const double loss : outcome.result->loss) EXPECT_TRUE(std::isfinite(loss));
    for (const traces::MemorySeries& series : outcome.trace.memory())
        if (series.memory == traces::MemoryClass::Activations || series.memory == traces::MemoryClass::Recompute) {
            EXPECT_EQ(series.value.back(), 0) << "rank " << series.rank.value << " " << traces::memoryClassText(series.memory);
        }
}

// Cases of a test go in a few parts, so that they run beside each other.
constexpr unsigned kCasesOfPart = 14;

class Stress : public testing::TestWithParam<unsigned> {
protected:
    void forEachSeed(const std::function<void(Draw&, std::size_t turn)>& test) const
    {
        const auto shuffled = GTEST_FLAG_GET(shuffle) ? static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()) : 0U;
        for (unsigned i = 0; i < kCasesOfPart; ++i) {
            const unsigned turn = GetParam() * kCasesOfPart + i;
            Draw draw(shuffled * 1000 + turn);
            test(draw, turn);
            if (HasFailure()) FAIL() << "of seed " << shuffled << ", case " << turn;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Stress, testing::Range(0U, 4U));

TEST_P(Stress, TrainsWhateverCanBePutTogether)
{
    forEachSeed([](Draw& draw, std::size_t turn) {
        const Plan plan = drawRunnable(draw, turn, 2);
        SCOPED_TRACE(writePlan(plan));
        const Outcome outcome = runPlan(plan);
        expectTrained(outcome, plan);
        expectPartOf(outcome, plan);
    });
}

TEST_P(Stress, StopsAnywhereAndRunsAgain)
{
    forEachSeed([](Draw& draw, std::size_t turn) {
        Plan plan = drawRunnable(draw, turn, 1'000'000);
        plan.run.check = CheckMode::Off;
        plan.run.rateCourse = RateCourse::Constant;
        plan.run.learningRate = 1e-6; // goes on for as long as it must
        SCOPED_TRACE(writePlan(plan));
        const std::unique_ptr<Session> session = makeLocalSession();
        Outcome outcome;
        ASSERT_TRUE(session->start(plan).ok());
        const auto slices = static_cast<std::size_t>(draw.among(0, 200));
        follow(*session, outcome, [&] { return outcome.trace.sliceCount() >= slices; });
        const int stage = draw.among(0, plan.stages() - 1);
        switch (draw.among(0, 3)) { // in the middle of whatever else is done to it
        case 0: session->pause(); break;
        case 1: session->trouble({.stage = stage, .held = true}); break;
        case 2: session->trouble({.stage = stage, .factor = 50.0}); break;
        default: break;
        }
        if (draw.once(2)) session->waitForRecords(std::chrono::milliseconds(1));
        session->stop();
        followToEnd(*session, outcome);
        EXPECT_EQ(outcome.last, SessionState::Stopped) << (outcome.failure ? outcome.failure->text : "");
        expectPartOf(outcome, plan);

        plan.run.steps = 1;
        plan.run.check = CheckMode::All;
        Outcome again;
        ASSERT_TRUE(session->start(plan).ok());
        followToEnd(*session, again);
        expectTrained(again, plan);
    });
}

TEST_P(Stress, EndsWithThePlaceWhereAnActionBreaks)
{
    forEachSeed([](Draw& draw, std::size_t turn) {
        const Plan plan = drawRunnable(draw, turn, 3);
        SCOPED_TRACE(writePlan(plan));
        const Schedule schedule = scheduleOf(plan).value();
        InjectedFault fault{draw.of({InjectedFault::Kind::Exception, InjectedFault::Kind::AllocationFailure}), ActionKind::Forward,
                            traces::Stage{draw.among(0, plan.stages() - 1)}, {}, traces::Step{draw.among(0, 2)}, 1};
        fault.microbatch = traces::MicroBatch{draw.among(0, schedule.units(schedule.flows().front()) - 1)};
        const Outcome outcome = runPlan(plan, {.fault = fault});
        ASSERT_EQ(outcome.last, SessionState::Failed);
        ASSERT_TRUE(outcome.failure);
        EXPECT_EQ(outcome.failure->stage, fault.stage.value) << outcome.failure->text;
        EXPECT_EQ(outcome.failure->microbatch, fault.microbatch.value) << outcome.failure->text;
        EXPECT_EQ(outcome.failure->step, fault.step.value) << outcome.failure->text;
        expectPartOf(outcome, plan);
    });
}

} // namespace
} // namespace stagecraft::runtime
