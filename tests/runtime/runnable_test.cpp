// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/runnable.h"

#include "tests/runtime/little_plan.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> notesOf(const std::function<void(Plan&)>& change)
{
    Plan plan = littleTransformer("1f1b", 2, 1, RunMode::Threads);
    change(plan);
    const Expected<RunnablePlan> runnable = makeRunnable(plan, {});
    EXPECT_TRUE(runnable.ok()) << runnable.error().message;
    return runnable.value().notes;
}

TEST(RunnablePlan, SaysWhichOfItsKeysHaveNoEffectAndWhy)
{
    EXPECT_THAT(notesOf([](Plan&) {}), IsEmpty());
    EXPECT_THAT(notesOf([](Plan& plan) { plan.run.tf32 = true; }), ElementsAre(AllOf(HasSubstr("run.tf32 has no effect"), HasSubstr("the run is on the CPU"))));
    EXPECT_THAT(notesOf([](Plan& plan) { plan.run.transport = Transport::Nccl; }),
                ElementsAre(AllOf(HasSubstr("run.transport nccl has no effect"), HasSubstr("leave it auto"))));
    EXPECT_THAT(notesOf([](Plan& plan) { plan.pipeline.sharding = Sharding::Zero1; }),
                ElementsAre(AllOf(HasSubstr("pipeline.sharding zero1 has no effect"), HasSubstr("machine.replicas is 1"))));
    EXPECT_THAT(notesOf([](Plan& plan) {
                    plan.pipeline.sharding = Sharding::Zero1;
                    plan.machine.replicas = 2;
                }),
                IsEmpty());
    EXPECT_THAT(notesOf([](Plan& plan) {
                    plan.run.mode = RunMode::Emulated;
                    plan.run.handoff = HandoffKind::Ring;
                }),
                ElementsAre(HasSubstr("run.handoff ring is of mode threads")));
}

} // namespace
} // namespace stagecraft::runtime
