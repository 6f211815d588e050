// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/work_id.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace stagecraft::runtime {

namespace {

using traces::ActionKind;
using traces::Flow;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;

TEST(WorkIds, KeepAllOfAnAction)
{
    std::set<WorkId> ids;
    for (int kind = 1; kind < traces::kActionKindCount; ++kind) {
        for (const Flow flow : {Flow::Single, Flow::Down, Flow::Up}) {
            for (const int stage : {0, 1, kMostMarkedStage}) {
                for (const int microbatch : {-1, 0, 1, kMostMarkedMicroBatch}) {
                    for (const int step : {0, 1, kSteps - 1}) {
                        for (const std::uint32_t run : {0U, 1U, kRuns - 1}) {
                            for (const int replica : {0, 1, kMostMarkedReplica}) {
                                const MarkedWork marked{
                                    .run = run,
                                    .step = Step{step},
                                    .work = {static_cast<ActionKind>(kind), flow, Stage{stage}, MicroBatch{microbatch}},
                                    .replica = replica};
                                const auto id = packWork(marked);
                                ASSERT_TRUE(id.has_value());
                                EXPECT_NE(*id, kNoWork);
                                EXPECT_TRUE(ids.insert(*id).second);
                                EXPECT_EQ(unpackWork(*id), marked);
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(WorkIds, RefuseWhatDoesNotFit)
{
    const auto pack = [](ActionKind kind, int stage, int microbatch, int step = 0, int replica = 0) {
        return packWork({.run = 0, .step = Step{step}, .work = {kind, Flow::Single, Stage{stage}, MicroBatch{microbatch}}, .replica = replica});
    };
    EXPECT_TRUE(pack(ActionKind::Forward, 0, 0).has_value());
    EXPECT_FALSE(pack(ActionKind::None, 0, 0).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, -1, 0).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, kMostMarkedStage + 1, 0).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, 0, -2).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, 0, kMostMarkedMicroBatch + 1).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, 0, 0, -1).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, 0, 0, 0, -1).has_value());
    EXPECT_FALSE(pack(ActionKind::Forward, 0, 0, 0, kMostMarkedReplica + 1).has_value());
}

TEST(WorkIds, OfOtherLibrariesAreNotRead)
{
    EXPECT_FALSE(unpackWork(kNoWork).has_value());
    EXPECT_FALSE(unpackWork(3).has_value());          // no kind, a flow that is none
    EXPECT_FALSE(unpackWork(1U << 2 | 3).has_value()); // a kind, a flow that is none
    EXPECT_FALSE(unpackWork(31U << 2).has_value());
    std::mt19937_64 random(5);
    for (int i = 0; i < 100'000; ++i) {
        const WorkId any = random();
        if (const auto marked = unpackWork(any)) {
            EXPECT_EQ(packWork(*marked), any);
        }
    }
}

TEST(WorkIds, FindTheStepAgainBehindTheirLastNumber)
{
    for (const int newest : {0, 5, kSteps / 2, kSteps - 1, kSteps, kSteps + 3, 3 * kSteps + 17, 2'000'000'000}) {
        for (const int ahead : {-100'000, -1, 0, 1, 100'000}) {
            if (newest + ahead < 0) continue;
            const MarkedWork back =
                *unpackWork(*packWork({.run = 300, .step = Step{newest + ahead}, .work = traces::forward(Stage{0}, MicroBatch{0}).work}));
            EXPECT_EQ(stepNear(back.step, Step{newest}), Step{newest + ahead});
            EXPECT_EQ(back.run, 300 % kRuns);
        }
    }
}

} // namespace

} // namespace stagecraft::runtime
