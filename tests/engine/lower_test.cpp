// SPDX-License-Identifier: Apache-2.0
#include "golden.h"
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

TEST(Lowering, MatchesPyTorchsOrderForGPipe)
{
    const Golden golden = readGolden("lowered_gpipe_p2_m2.txt");
    const engine::Schedule lowered = engine::lowerCommunication(made("gpipe", 2, 2)).value();
    EXPECT_EQ(engine::toText(lowered), withoutComments(golden.text));
}

TEST(Lowering, SendsNothingBetweenStagesOfOneRank)
{
    const engine::Schedule one = engine::parseSchedule("0F0,1F0,1B0,0B0\n").value();
    EXPECT_EQ(engine::toText(engine::lowerCommunication(one).value()), "0F0,1F0,1B0,0B0\n");
}

TEST(Lowering, IsUndoneByLeavingTheCommunicationOut)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        const engine::Schedule plain = made(family.name, 4, 8, family.minChunks);
        EXPECT_EQ(engine::withoutCommunication(engine::lowerCommunication(plain).value()), plain) << family.name;
    }
}

TEST(Lowering, RefusesAScheduleThatCommunicatesAlready)
{
    const engine::Schedule lowered = engine::lowerCommunication(made("gpipe", 2, 2)).value();
    EXPECT_FALSE(engine::lowerCommunication(lowered).ok());
}

TEST(Lowering, RefusesAScheduleThatCannotBeExecuted)
{
    const engine::Schedule stuck = engine::parseSchedule("0F0,0B1,0F1,0B0\n1F0,1F1,1B0,1B1\n").value();
    traces::Expected<engine::Schedule> lowered = engine::lowerCommunication(stuck);
    ASSERT_FALSE(lowered.ok());
    EXPECT_THAT(lowered.error().message, ::testing::HasSubstr("rank 0 waits at position 1 (0B1)"));
}

TEST(Lowering, LeavesEveryFamilyLegalAndItsTimesUnchanged)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        const engine::Schedule plain = made(family.name, 4, 8, family.minChunks);
        const engine::Schedule lowered = engine::lowerCommunication(plain).value();
        EXPECT_TRUE(engine::validate(lowered).legal()) << family.name;
        const engine::CostTable costs = slotCosts(plain.stages(), kSlot, 2 * kSlot, kSlot / 2);
        EXPECT_EQ(figuresOf(plain, costs).makespan, figuresOf(lowered, costs).makespan) << family.name;
    }
}

} // namespace
