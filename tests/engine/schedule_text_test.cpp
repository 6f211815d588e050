// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using ::testing::HasSubstr;

namespace {

std::string errorOf(std::string_view text)
{
    traces::Expected<engine::Schedule> schedule = engine::parseSchedule(text);
    return schedule.ok() ? "no error" : schedule.error().message;
}

TEST(ScheduleText, DerivesRanksStagesChunksAndMicroBatches)
{
    const engine::Schedule s = engine::parseSchedule("# comment\n 0F0 , 2F0,2B0,0B0\r\n\n1F0,1B0\n").value();
    EXPECT_EQ(s.ranks, 2);
    EXPECT_EQ(s.stages(), 3);
    EXPECT_EQ(s.chunks, 2);
    EXPECT_EQ(s.microbatches, 1);
    EXPECT_EQ(s.stageToRank[2], traces::Rank{0});
    EXPECT_EQ(engine::toText(s), "0F0,2F0,2B0,0B0\n1F0,1B0\n");
}

TEST(ScheduleText, TakesEmptyCellsAsPauses)
{
    EXPECT_EQ(engine::toText(engine::parseSchedule("0F0,,0B0\n,1F0,1B0,\n").value()), "0F0,0B0\n1F0,1B0\n");
}

TEST(ScheduleText, ReadsEveryKindOfAction)
{
    const std::string text = "0F0,0SEND_F0,1RECV_F0,1I0,1W0,0UNSHARD,0RESHARD,0REDUCE_GRAD,0OFFLOAD0,0RELOAD0,"
                             "(0F1;1B0)OVERLAP_F_B,0RECOMPUTE1,0OPTIMIZER,0ALL_REDUCE,0SEND_B1,0RECV_B1\n";
    EXPECT_EQ(engine::toText(engine::parseSchedule(text).value()), text);
}

TEST(ScheduleText, NamesLineAndCellOfAnError)
{
    EXPECT_THAT(errorOf("0F0,0B0\n1F0,1X0\n"), HasSubstr("line 2, cell 2: action \"1X0\""));
    EXPECT_THAT(errorOf("0F\n"), HasSubstr("the micro-batch number is missing"));
    EXPECT_THAT(errorOf("F0\n"), HasSubstr("does not begin with a stage number"));
    EXPECT_THAT(errorOf("99999F0\n"), HasSubstr("from 0 to 32767"));
    EXPECT_THAT(errorOf("(0F0;1F0)OVERLAP_F_B\n"), HasSubstr("must be a backward"));
    EXPECT_THAT(errorOf("(0F0,0B0\n"), HasSubstr("overlapped pair"));
}

TEST(ScheduleText, RefusesWhatMakesNoSchedule)
{
    EXPECT_THAT(errorOf(""), HasSubstr("no action"));
    EXPECT_THAT(errorOf("# only a comment\n"), HasSubstr("no action"));
    EXPECT_THAT(errorOf("0F0\n2F0\n"), HasSubstr("stage 1 has no action"));
    EXPECT_THAT(errorOf("0F2000000000\n"), HasSubstr("count from 0 without gaps"));
    std::string sparse; // 10,000 stages, 10,000 micro-batches, 20,000 actions: a square of memory
    for (int i = 0; i < 10'000; ++i) sparse += std::to_string(i) + "F0," + "0F" + std::to_string(i) + ",";
    EXPECT_THAT(errorOf(sparse), HasSubstr("there are only 20000 actions"));
}

} // namespace
