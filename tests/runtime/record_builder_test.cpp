// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/record_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::runtime {
namespace {

using namespace traces;
using engine::generate;
using engine::Schedule;

class RecordBuilderTest : public testing::Test {
protected:
    void start(int ranks, int chunks)
    {
        schedule =
            generate({.name = chunks == 1 ? "1f1b" : "interleaved", .ranks = ranks, .chunks = chunks, .microbatches = 2})
                .value();
        builder = std::make_unique<RecordBuilder>(schedule);
        std::vector<Record> out;
        builder->begin(out);
        take(out);
    }
    void add(int rank, const RunEvent& event)
    {
        std::vector<Record> out;
        builder->add(Rank{rank}, event, out);
        take(out);
    }
    void endStep(int step)
    {
        std::vector<Record> out;
        builder->endStep(Step{step}, out);
        take(out);
    }
    void take(const std::vector<Record>& out)
    {
        for (const Record& record : out) {
            const auto applied = traces::apply(trace, record);
            EXPECT_TRUE(applied.ok()) << applied.error().message;
        }
    }
    [[nodiscard]] std::vector<std::string> edges() const
    {
        std::vector<std::string> result;
        for (const Lane& lane : trace.lanes()) {
            const LaneId id = *trace.findLane(lane.info().rank, lane.info().kind, lane.info().depth);
            for (const Edge& edge : trace.edgesOfLane(id))
                result.push_back(trace.sliceName(edge.from) + ">" + trace.sliceName(edge.to) + "@" +
                                 std::to_string(edge.ready));
        }
        return result;
    }

    Schedule schedule; // outlives the builder
    std::unique_ptr<RecordBuilder> builder;
    Trace trace;
};

RunEvent act(const Action& action, const ActionTimes& times, int step = 0)
{
    return actionEvent(Step{step}, action.work, times);
}

TEST_F(RecordBuilderTest, DrawsHandOffsOnTheSendersLaneAndAnEdgeToTheConsumer)
{
    start(2, 1);
    add(0, act(forward(Stage{0}, MicroBatch{0}), {.begin = 0, .end = 10, .available = 12}));
    add(1, act(forward(Stage{1}, MicroBatch{0}), {.begin = 15, .end = 20, .ready = 12}));
    add(1, act(backward(Stage{1}, MicroBatch{0}), {.begin = 20, .end = 30, .available = 33}));
    add(0, act(backward(Stage{0}, MicroBatch{0}), {.begin = 35, .end = 40, .ready = 33}));

    const Lane& sends0 = trace.lane(*trace.findLane(Rank{0}, LaneKind::Transfer));
    ASSERT_EQ(sends0.size(), 1U);
    EXPECT_EQ(toText(sends0.action(0)), "0SEND_F0");
    EXPECT_EQ(sends0.begin(0), 10);
    EXPECT_EQ(sends0.end(0), 12);
    const Lane& sends1 = trace.lane(*trace.findLane(Rank{1}, LaneKind::Transfer));
    ASSERT_EQ(sends1.size(), 1U);
    EXPECT_EQ(toText(sends1.action(0)), "1SEND_B0");
    EXPECT_THAT(edges(), testing::UnorderedElementsAre("0F0>1F0@12", "1B0>0B0@33"));
}

TEST_F(RecordBuilderTest, LaysOperatorsOnALaneBeneathTheRank)
{
    start(2, 1);
    const char* const product = "aten::mm";
    const char* const sum = "aten::add";
    std::vector<Record> out;
    builder->add(OperatorBatch{.rank = Rank{1}, .step = Step{3}, .spans = {{product, 10, 14}, {sum, 14, 15}}}, out);
    builder->add(OperatorBatch{.rank = Rank{1}, .step = Step{3}, .beside = 1, .spans = {{sum, 11, 12}}}, out);
    builder->add(OperatorBatch{.rank = Rank{0}, .step = Step{3}, .spans = {}}, out);
    builder->add(OperatorBatch{.rank = Rank{1}, .step = Step{4}, .spans = {{product, 20, 25}}}, out);
    take(out);
    const Lane& own = trace.lane(*trace.findLane(Rank{1}, LaneKind::Stream));
    EXPECT_EQ(own.info().name, "rank 1 operators");
    ASSERT_EQ(own.size(), 3U);
    EXPECT_EQ(trace.text(own.text(0)), "aten::mm");
    EXPECT_EQ(own.text(0), own.text(2)) << "a name is written once";
    EXPECT_EQ(own.step(2), Step{4});
    EXPECT_EQ(trace.lane(*trace.findLane(Rank{1}, LaneKind::Stream, 1)).info().name, "rank 1 operators (2)");
    EXPECT_FALSE(trace.findLane(Rank{0}, LaneKind::Stream)) << "it called none";
}

// Gathers come from a thread of their own, before or after what uses them.
TEST_F(RecordBuilderTest, LeadsFromEachGatherToWhatUsesItsWeights)
{
    start(1, 1);
    const Action gather = makeAction(ActionKind::Unshard, Stage{0});
    const Action giveUp = makeAction(ActionKind::Reshard, Stage{0});
    add(0, act(gather, {.begin = 0, .end = 5}));
    add(0, act(forward(Stage{0}, MicroBatch{0}), {.begin = 6, .end = 10, .gathered = 5}));
    add(0, act(forward(Stage{0}, MicroBatch{1}), {.begin = 10, .end = 14, .gathered = 5}));
    add(0, act(giveUp, {.begin = 14, .end = 15}));
    add(0, act(backward(Stage{0}, MicroBatch{0}), {.begin = 30, .end = 40, .gathered = 29}));
    EXPECT_THAT(edges(), testing::ElementsAre("0UNSHARD>0F0@5", "0UNSHARD>0F1@5"));
    add(0, act(gather, {.begin = 16, .end = 28}));
    const std::vector<Edge>& all = trace.edgesOfLane(*trace.findLane(Rank{0}, LaneKind::Compute));
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(trace.slice(all[2].from).begin, 16);
    EXPECT_EQ(trace.sliceName(all[2].to), "0B0");
    // what is given up lies where the rank does it
    EXPECT_EQ(toText(trace.lane(*trace.findLane(Rank{0}, LaneKind::Compute)).action(2)), "0RESHARD");
}

TEST_F(RecordBuilderTest, WaitsWithAnEdgeUntilItsProducerHasCome)
{
    start(2, 1);
    add(1, act(forward(Stage{1}, MicroBatch{0}), {.begin = 15, .end = 20, .ready = 12}));
    EXPECT_EQ(trace.edgeCount(), 0U);
    add(0, act(forward(Stage{0}, MicroBatch{0}), {.begin = 0, .end = 10, .available = 12}));
    EXPECT_THAT(edges(), testing::ElementsAre("0F0>1F0@12"));
}

TEST_F(RecordBuilderTest, LetsGoOfAnEdgeWhoseProducerWasLostButNotOfTheNext)
{
    start(2, 1);
    add(1, act(forward(Stage{1}, MicroBatch{0}), {.begin = 15, .end = 20, .ready = 12})); // 0F0 was lost
    add(0, act(forward(Stage{0}, MicroBatch{0}), {.begin = 50, .end = 60, .available = 61}, 1));
    add(1, act(forward(Stage{1}, MicroBatch{0}), {.begin = 61, .end = 70, .ready = 61}, 1));
    EXPECT_EQ(trace.edgeCount(), 0U);
    endStep(0);
    EXPECT_THAT(edges(), testing::ElementsAre("0F0>1F0@61"));
}

TEST_F(RecordBuilderTest, LaysHandOffsThatOverlapOnLanesOfTheirOwn)
{
    start(2, 1);
    add(0, act(forward(Stage{0}, MicroBatch{0}), {.begin = 0, .end = 10, .available = 40}));
    add(0, act(forward(Stage{0}, MicroBatch{1}), {.begin = 10, .end = 20, .available = 50}));
    const auto second = trace.findLane(Rank{0}, LaneKind::Transfer, 1);
    ASSERT_TRUE(second);
    EXPECT_EQ(toText(trace.lane(*second).action(0)), "0SEND_F1");
}

TEST_F(RecordBuilderTest, StagesOfOneRankHandOverWithoutATransfer)
{
    start(1, 2);
    add(0, act(forward(Stage{0}, MicroBatch{0}), {.begin = 0, .end = 10, .available = 10}));
    add(0, act(forward(Stage{1}, MicroBatch{0}), {.begin = 10, .end = 20, .ready = 10}));
    EXPECT_TRUE(trace.lane(*trace.findLane(Rank{0}, LaneKind::Transfer)).empty());
    EXPECT_THAT(edges(), testing::ElementsAre("0F0>1F0@10"));
}

// All ranks meet in an all-reduce; those that came earlier waited for the last one.
TEST_F(RecordBuilderTest, LinksWhatComesBehindAMeetingWithTheRankThatCameLast)
{
    start(3, 1);
    for (const int step : {0, 1}) {
        const TimeNs base = step * 1000;
        for (const int rank : {0, 1, 2}) {
            const Stage stage{rank};
            const TimeNs came = base + 100 - rank * 10; // rank 0 last
            add(rank, act(backward(stage, MicroBatch{1}), {.begin = base + 50, .end = came}, step));
            RunEvent norm = act(makeAction(ActionKind::AllReduce, stage), {.begin = came, .end = base + 105, .ready = base + 103}, step);
            norm.value[RunEvent::kOfAll] = 1;
            add(rank, norm);
            add(rank, act(makeAction(ActionKind::Optimizer, stage), {.begin = base + 105, .end = base + 110}, step));
        }
        endStep(step);
    }
    EXPECT_EQ(edges(), (std::vector<std::string>{"0B1>1OPTIMIZER@103", "0B1>1OPTIMIZER@1103", "0B1>2OPTIMIZER@103", "0B1>2OPTIMIZER@1103"}));
}

// Of two copies of the weights, whose sum two ranks make, nothing is said of all.
TEST_F(RecordBuilderTest, TakesASumOfTwoRanksForNoMeetingOfAll)
{
    start(2, 1);
    for (const int rank : {0, 1}) {
        add(rank, act(backward(Stage{rank}, MicroBatch{1}), {.begin = 0, .end = 10}));
        add(rank, act(makeAction(ActionKind::AllReduce, Stage{rank}), {.begin = 10, .end = 20}));
        add(rank, act(makeAction(ActionKind::Optimizer, Stage{rank}), {.begin = 20, .end = 30}));
    }
    endStep(0);
    EXPECT_TRUE(edges().empty());
}

TEST_F(RecordBuilderTest, LeavesOutMemoryThatDidNotChange)
{
    start(1, 1);
    add(0, memoryEvent(5, {100, 0, 0, 7, 0}));
    add(0, memoryEvent(6, {100, 0, 0, 9, 0}));
    const MemorySeries* weights = trace.memorySeries(Rank{0}, MemoryClass::Weights);
    const MemorySeries* activations = trace.memorySeries(Rank{0}, MemoryClass::Activations);
    ASSERT_NE(weights, nullptr);
    ASSERT_NE(activations, nullptr);
    EXPECT_THAT(weights->time, testing::ElementsAre(5));
    EXPECT_THAT(activations->value, testing::ElementsAre(7, 9));
}

} // namespace
} // namespace stagecraft::runtime
