// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/gpu_runs.h"
#include "engine/plan/plan_json.h"

#include <gmock/gmock.h>

namespace {

using namespace stagecraft::engine;
using ::testing::HasSubstr;

TEST(GpuRun, IsRefusedByWhatTheEngineDoesOnTheCpuAlone)
{
    const auto refusal = [](Plan plan) {
        EXPECT_TRUE(checkGpuRun(plan).ok()) << "the device is the cpu";
        plan.run.device = DeviceKind::Cuda;
        const Expected<void> able = checkGpuRun(plan);
        EXPECT_EQ(able.ok(), checkGpuRun(plan, scheduleOf(plan).value()).ok());
        return able.ok() ? std::string() : able.error().message;
    };
    Plan plan = presetPlan("gpt-small").value();
    EXPECT_EQ(refusal(plan), "");
    plan.run.mode = RunMode::Processes;
    EXPECT_EQ(refusal(plan), "");
    plan.run.mode = RunMode::Emulated;
    plan.machine.replicas = 2;
    EXPECT_EQ(refusal(plan), "");
    plan.pipeline.sharding = Sharding::Zero3;
    EXPECT_EQ(refusal(plan), "");

    Plan moved = withShape(Plan{}, 4, 1);
    moved.pipeline.microbatches = 8;
    moved.pipeline.offload = 0.5;
    EXPECT_THAT(refusal(moved), HasSubstr("schedule 1f1b offloads activations"));
    moved.pipeline.offload = 0;
    moved.pipeline.schedule = "bpipe";
    EXPECT_THAT(refusal(moved), HasSubstr("schedule bpipe offloads activations"));
    EXPECT_EQ(refusal(withShape(moved, 2, 1)), "") << "with two ranks BPipe moves nothing";
    EXPECT_THAT(refusal(withCustomSchedule(Plan{}, "0F0,0OFFLOAD0,0F1,0B1,0RELOAD0,0B0").value()), HasSubstr("schedule custom offloads activations"));
}

} // namespace
