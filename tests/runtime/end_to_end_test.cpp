// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/run_plan.h"

namespace stagecraft::runtime {
namespace {

using namespace engine;

TEST(LocalSession, RunsHelloOnThreads)
{
    Plan plan = preset("hello");
    plan.run.mode = RunMode::Threads;
    const Outcome outcome = runPlan(plan);
    EXPECT_EQ(outcome.last, SessionState::Finished);
    if (outcome.failure) ADD_FAILURE() << outcome.failure->text;
    ASSERT_TRUE(outcome.result);
    EXPECT_EQ(outcome.result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(outcome.result->outputs, (std::vector<std::vector<std::int64_t>>{{32, 1024}}));
}

} // namespace
} // namespace stagecraft::runtime
