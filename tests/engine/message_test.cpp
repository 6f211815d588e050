// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan_json.h"
#include "engine/session/session_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace stagecraft::engine;
using ::testing::HasSubstr;

namespace {

RunResult fullResult()
{
    RunResult r;
    r.mode = "threads";
    r.device = "cpu";
    r.steps = 3;
    r.stepNs = 4'000'000'001;
    r.predictedStepNs = 3'900'000'000;
    r.idealStepNs = 3'800'000'000;
    r.efficiency = 0.97;
    r.loss = {2.5, 1.25, 0.625};
    r.outputs = {{32, 1024}};
    r.gradientCheck = GradientCheck::Tolerance;
    r.gradientMaxAbsDiff = 1e-7;
    r.measuredCosts = {{.forward = 5, .optimizer = 6}, {.backward = 7, .activationBytes = 8}};
    r.measuredTransferNs = 12;
    r.throughput = {1, 2, 3, 4, 0.5};
    r.text = TextLearned{.entropy = 2.5, .before = "xq\n\"", .after = "the \u00fc"};
    r.stageActivations = {{.saved = 9, .forWeights = 10, .booked = 11}, {}};
    r.rankActivations = {{.peak = 18, .predicted = 18}, {.peak = 3, .predicted = {}}};
    return r;
}

TEST(SessionMessage, SurvivesWritingAndReading)
{
    const SessionMessage messages[] = {StateMessage{SessionState::Paused}, ProgressMessage{"step 3 of \"5\"\n", 0.6},
                                       FailureMessage{"out of memory", 1, 2, 3, 0}, FailureMessage{"nothing known", {}, {}, {}, {}},
                                       ResultMessage{fullResult()}};
    for (const SessionMessage& message : messages) {
        const std::string line = writeMessage(message);
        EXPECT_EQ(line.find('\n'), std::string::npos);
        EXPECT_EQ(readMessage(line).value(), message) << line;
    }
}

TEST(SessionMessage, CarriesALossThatDiverged)
{
    RunResult result = fullResult();
    result.loss = {1.0, std::numeric_limits<double>::infinity()};
    const SessionMessage read = readMessage(writeMessage(ResultMessage{result})).value();
    EXPECT_EQ(std::get<ResultMessage>(read).result.loss[0], 1.0);
    EXPECT_TRUE(std::isnan(std::get<ResultMessage>(read).result.loss[1]));
}

TEST(SessionMessage, RefusesWhatItDoesNotKnow)
{
    EXPECT_THAT(readMessage(R"({"message":"hello"})").error().message, HasSubstr("\"hello\" is not known"));
    EXPECT_THAT(readMessage(R"({"message":"state","state":"asleep"})").error().message, HasSubstr("state: \"asleep\""));
    EXPECT_FALSE(readMessage("{").ok());
}

TEST(SessionCommand, SurvivesWritingAndReading)
{
    const SessionCommand start{CommandKind::Start, presetPlan("gpt-small").value()};
    EXPECT_EQ(writeCommand(start).find('\n'), std::string::npos);
    EXPECT_EQ(readCommand(writeCommand(start)).value(), start);
    for (const CommandKind kind : {CommandKind::Pause, CommandKind::Resume, CommandKind::Stop, CommandKind::Quit})
        EXPECT_EQ(readCommand(writeCommand({kind, {}})).value(), (SessionCommand{kind, {}}));
    for (const StageTrouble& trouble : {StageTrouble{.stage = 1, .factor = 2.5}, {.stage = 0, .held = true}, {.stage = 3, .factor = 1.0, .held = false}}) {
        const SessionCommand command{.kind = CommandKind::Trouble, .plan = {}, .trouble = trouble};
        EXPECT_EQ(readCommand(writeCommand(command)).value(), command);
    }
}

TEST(SessionCommand, SaysWhatATroubleLacks)
{
    EXPECT_THAT(readCommand(R"({"command":"trouble","factor":2})").error().message, HasSubstr("stage: is missing"));
    EXPECT_THAT(readCommand(R"({"command":"trouble","stage":1})").error().message, HasSubstr("factor: is missing"));
    EXPECT_THAT(readCommand(R"({"command":"trouble","stage":1,"factor":0.5})").error().message, HasSubstr("factor: 0.5 is not allowed"));
}

TEST(SessionCommand, WantsASoundPlanToStart)
{
    EXPECT_THAT(readCommand(R"({"command":"start"})").error().message, HasSubstr("plan: is missing"));
    EXPECT_THAT(readCommand(R"({"command":"start","plan":{"stagecraft_plan":1,"pipeline":{"ranks":0}}})").error().message,
                HasSubstr("plan: pipeline.ranks: 0 is not allowed"));
    EXPECT_THAT(readCommand(R"({"command":"dance"})").error().message, HasSubstr("\"dance\" is not allowed"));
}

} // namespace
