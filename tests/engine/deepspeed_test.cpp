// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/deepspeed.h"
#include "golden.h"
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::HasSubstr;

namespace {

using engine::DeepSpeedKind;

engine::Schedule reread(const engine::Schedule& schedule)
{
    return engine::parseSchedule(engine::deepSpeedText(schedule).value()).value();
}

std::string refusal(std::string_view text)
{
    const traces::Expected<engine::Schedule> schedule = engine::parseSchedule(text);
    return schedule.ok() ? "" : schedule.error().message;
}

TEST(DeepSpeed, PrintsTheTrainingListOfFourStages)
{
    const Golden golden = readGolden("deepspeed_trainschedule_p4_m4.txt");
    EXPECT_EQ(engine::deepSpeedText(made("1f1b", 4, 4)).value(), withoutComments(golden.text));
}

TEST(DeepSpeed, TrainsByOneFOneB)
{
    for (int p = 1; p <= 9; ++p)
        for (int m = 1; m <= 12; ++m) {
            const engine::Schedule expected = made("1f1b", p, m);
            EXPECT_EQ(engine::withoutCommunication(reread(expected)).order, expected.order) << p << " stages, " << m << " micro-batches";
        }
}

TEST(DeepSpeed, InfersForwardOnly)
{
    for (int p = 1; p <= 9; ++p)
        for (int m = 1; m <= 12; ++m) {
            const engine::Schedule expected = made("forward-only", p, m);
            EXPECT_EQ(engine::withoutCommunication(reread(expected)).order, expected.order) << p << " stages, " << m << " micro-batches";
        }
}

// Neighbours do the opposite in every step, so sends that wait for their receiver meet it.
TEST(DeepSpeed, DoesNotDeadlockWhereSendsWait)
{
    for (const char* family : {"1f1b", "forward-only"})
        for (int p = 1; p <= 6; ++p)
            for (const engine::SendMode send : engine::kSendModes)
                for (const int m : {1, 3, 8})
                    EXPECT_TRUE(engine::validate(reread(made(family, p, m)), {.send = send}).legal())
                        << family << " p=" << p << " m=" << m << " " << engine::sendModeName(send);
}

// As many buffers as micro-batches are in flight, two at least; each micro-batch takes the next one in turn.
TEST(DeepSpeed, UsesAsManyBuffersAsAreInFlight)
{
    for (int p = 1; p <= 8; ++p)
        for (int m = 1; m <= 10; ++m)
            for (int s = 0; s < p; ++s) {
                const int buffers = std::max(2, std::min(p - s, m));
                int forwards = 0;
                int backwards = 0;
                int inFlight = 0;
                int most = 0;
                const engine::DeepSpeedSteps steps = engine::deepSpeedTrainSteps(p, m, s);
                EXPECT_EQ(steps.size(), static_cast<std::size_t>(2 * (m + p - 1)));
                for (const auto& step : steps)
                    for (const engine::DeepSpeedInstruction& instruction : step) {
                        if (instruction.kind == DeepSpeedKind::ForwardPass) {
                            EXPECT_EQ(instruction.buffer, forwards++ % buffers);
                            most = std::max(most, ++inFlight);
                        }
                        if (instruction.kind == DeepSpeedKind::BackwardPass) {
                            EXPECT_EQ(instruction.buffer, backwards++ % buffers);
                            --inFlight;
                        }
                    }
                EXPECT_EQ(forwards, m);
                EXPECT_EQ(backwards, m);
                EXPECT_EQ(most, std::min(p - s, m));
            }
}

TEST(DeepSpeed, HasNoListForOtherSchedules)
{
    for (const char* family : {"gpipe", "zb-h1"})
        EXPECT_THAT(engine::deepSpeedText(made(family, 4, 8)).error().message, HasSubstr("only for 1f1b and forward-only"));
    EXPECT_FALSE(engine::deepSpeedText(made("interleaved", 4, 8, 2)).ok());
}

TEST(DeepSpeed, ReadsHeadersAndBlanksAsPeopleWriteThem)
{
    const char* text = "# printed by hand\n\n# stage 0:\n  [ LoadMicroBatch(buffer_id=0),ForwardPass(buffer_id = 0) ]\n"
                       "[BackwardPass(buffer_id=0)]\n";
    EXPECT_THAT(refusal(text), HasSubstr("line 4, stage 0: \"ForwardPass(buffer_id = 0)\" is no instruction"));
    const char* clean = "# printed by hand\n\n# stage 0:\n  [ LoadMicroBatch(buffer_id=0),ForwardPass(0) ]\n[BackwardPass(buffer_id=0)]\n";
    EXPECT_EQ(engine::toText(engine::parseSchedule(clean).value()), "0F0,0B0\n");
}

TEST(DeepSpeed, TellsWhereAListIsWrong)
{
    EXPECT_THAT(refusal("[ForwardPass(buffer_id=0)]\n"), HasSubstr("\"stage 0\" must come before"));
    EXPECT_THAT(refusal("stage 1\n[ForwardPass(buffer_id=0)]\n"), HasSubstr("line 1: stage 1 follows stage -1"));
    EXPECT_THAT(refusal("stage 0\n[ForwardPass(buffer_id=0)\n[]\n"), HasSubstr("line 2, stage 0: a step is a list in brackets"));
    EXPECT_THAT(refusal("stage 0\n[Forward(buffer_id=0)]\n"), HasSubstr("\"Forward(buffer_id=0)\" is no instruction"));
    EXPECT_THAT(refusal("stage 0\n[BackwardPass(buffer_id=0)]\n"), HasSubstr("BackwardPass(buffer_id=0): no ForwardPass has filled"));
    EXPECT_THAT(refusal("stage 0\n[SendActivation(buffer_id=1)]\n"), HasSubstr("no ForwardPass"));
    EXPECT_THAT(refusal("stage 0\n[SendGrad(buffer_id=1)]\n"), HasSubstr("no BackwardPass"));
    // the second forward would overwrite what the backward needs
    EXPECT_THAT(refusal("stage 0\n[ForwardPass(buffer_id=0)]\n[ForwardPass(buffer_id=0)]\n[BackwardPass(buffer_id=0)]\n"),
                HasSubstr("line 3, stage 0: ForwardPass(buffer_id=0): the buffer is still in use"));
    EXPECT_THAT(refusal("stage 0\n[RecvActivation(buffer_id=0)]\n[RecvActivation(buffer_id=1)]\n[ForwardPass(buffer_id=1)]\n"),
                HasSubstr("has micro-batch 1, and 0 is next"));
}

} // namespace
