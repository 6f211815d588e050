// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/unit_streams.h"

#include "engine/runtime/rank_work.h"
#include "engine/schedule/milestones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stagecraft::runtime {
namespace {

using engine::generate;
using engine::parseSchedule;
using traces::ActionKind;
using traces::Rank;
using traces::Work;

// "0F0:0 0F1:1 ..." of a rank's list
std::string streamsOf(const Schedule& schedule, Rank rank)
{
    const std::vector<Action> list = rankWork(schedule, rank);
    const UnitStreams streams(list);
    std::string text;
    for (const Action& action : list)
        engine::forEachWork(action, [&](const Work& work) { text += (text.empty() ? "" : " ") + toText(Action{work, {}}) + ":" + std::to_string(streams.of(work)); });
    return text;
}

TEST(UnitStreams, GiveAForwardTheStreamThatItsPartnerIsNotOn)
{
    const Schedule schedule = parseSchedule("0F0,0F1,(0F2;0B0)OVERLAP_F_B,(0F3;0B2)OVERLAP_F_B,0B1,0B3\n").value();
    EXPECT_EQ(streamsOf(schedule, Rank{0}), "0F0:0 0F1:0 0F2:1 0B0:0 0F3:0 0B2:1 0B1:0 0B3:0 0OPTIMIZER:0");
}

TEST(UnitStreams, PartEveryPairOfEveryFamilyAndLeaveTheOthersWhereTheyAre)
{
    int pairs = 0;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        for (const int ranks : {2, 4, 8})
            for (int microbatches = 2; microbatches <= 24; microbatches += 2) {
                const engine::ScheduleRequest request{.name = family.name, .ranks = ranks, .chunks = family.minChunks, .microbatches = microbatches};
                if (!engine::checkRequest(request).ok()) continue;
                const Schedule schedule = generate(request).value();
                for (int r = 0; r < ranks; ++r) {
                    const std::vector<Action> list = rankWork(schedule, Rank{r});
                    const UnitStreams streams(list);
                    bool any = false;
                    for (const Action& action : list) {
                        if (action.kind() != ActionKind::Overlap) continue;
                        any = true;
                        ++pairs;
                        EXPECT_NE(streams.of(action.work), streams.of(action.partner)) << family.name << " " << toText(action);
                    }
                    for (const Action& action : list)
                        if (!any || action.microbatch() == traces::kNoMicroBatch) {
                            EXPECT_EQ(streams.of(action.work), 0U) << family.name << " " << toText(action);
                        }
                }
            }
    EXPECT_GT(pairs, 100);
}

TEST(UnitStreams, AreOfUseWherePairsShareNothing)
{
    EXPECT_TRUE(runsPairsSideBySide(generate({.name = "dualpipe-v", .ranks = 2, .chunks = 2, .microbatches = 4}).value(), Rank{0}));
    EXPECT_FALSE(runsPairsSideBySide(generate({.name = "1f1b", .ranks = 2, .microbatches = 4}).value(), Rank{0}));
    Schedule sliced = parseSchedule("0F0,0F1,(0F2;0B1)OVERLAP_F_B,0F3,0B3,0B0,0B2\n").value();
    EXPECT_TRUE(runsPairsSideBySide(sliced, Rank{0}));
    sliced.slices = 2;
    EXPECT_FALSE(runsPairsSideBySide(sliced, Rank{0})) << "a slice reads the keys and values of the one before";
}

} // namespace
} // namespace stagecraft::runtime
