// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/memory_need.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::AllOf;
using testing::HasSubstr;
using traces::test::spill;
using traces::test::TemporaryFolder;

constexpr Bytes kMiB = Bytes{1} << 20;

void spillInto(const TemporaryFolder& folder, const std::string& name, const std::string& text)
{
    std::filesystem::create_directories(std::filesystem::path(folder.file(name)).parent_path());
    spill(folder.file(name), text);
}

constexpr const char* kMemInfo = "MemTotal:        8192 kB\nMemFree:  10 kB\nMemAvailable:    4096 kB\n";

TEST(HostMemory, IsTheMachinesWhereNothingBoundsIt)
{
    const TemporaryFolder folder;
    spillInto(folder, "proc/meminfo", kMemInfo);
    spillInto(folder, "proc/self/cgroup", "0::/\n");
    spillInto(folder, "sys/fs/cgroup/memory.max", "max\n");
    const HostMemory memory = hostMemory(folder.file(""));
    EXPECT_EQ(memory.total, 8 * kMiB);
    EXPECT_EQ(memory.available, 4 * kMiB);
}

// The service may have 6 MiB, but the slice that it is in has 3, of which 2 are taken and a half of that can be given up.
TEST(HostMemory, IsWhatTheTightestControlGroupLeaves)
{
    const TemporaryFolder folder;
    spillInto(folder, "proc/meminfo", kMemInfo);
    spillInto(folder, "proc/self/cgroup", "0::/a.slice/b.service\n");
    spillInto(folder, "sys/fs/cgroup/a.slice/b.service/memory.max", "6291456\n");
    spillInto(folder, "sys/fs/cgroup/a.slice/b.service/memory.current", "1048576\n");
    spillInto(folder, "sys/fs/cgroup/a.slice/memory.max", "3145728\n");
    spillInto(folder, "sys/fs/cgroup/a.slice/memory.current", "2097152\n");
    spillInto(folder, "sys/fs/cgroup/a.slice/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 9\n");
    const HostMemory memory = hostMemory(folder.file(""));
    EXPECT_EQ(memory.total, 3 * kMiB);
    EXPECT_EQ(memory.available, 2 * kMiB);
}

// Within a container the group's path is the host's, and only the mount's root is there. No limit is a huge number.
TEST(HostMemory, ReadsTheFirstVersionOfControlGroups)
{
    const TemporaryFolder folder;
    spillInto(folder, "proc/meminfo", kMemInfo);
    spillInto(folder, "proc/self/cgroup", "9:cpuset:/x\n7:memory:/docker/1234\n");
    spillInto(folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(hostMemory(folder.file("")).total, 8 * kMiB);
    spillInto(folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
    spillInto(folder, "sys/fs/cgroup/memory/memory.usage_in_bytes", "524288\n");
    EXPECT_EQ(hostMemory(folder.file("")).total, kMiB);
    EXPECT_EQ(hostMemory(folder.file("")).available, kMiB / 2);
}

TEST(HostMemory, TellsThisMachines)
{
    const HostMemory memory = hostMemory();
    EXPECT_GT(memory.available, 0);
    EXPECT_LE(memory.available, memory.total);
}

// Linear(4, 4) | Linear(4, 4), 3 micro-batches of 2 rows, SGD.
Plan littlePlan(CheckMode check)
{
    Plan plan;
    plan.model.layers = {Linear{4, 4}, Linear{4, 4}};
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = "gpipe", .ranks = 2, .chunks = 1, .microbatches = 3, .customSchedule = {}};
    plan.costs.activationBytes = 100;
    plan.run.optimizer = OptimizerKind::Sgd;
    plan.run.check = check;
    return plan;
}

MemoryNeed needOf(const Plan& plan) { return memoryNeed(plan, scheduleOf(plan).value(), costsOf(plan).value()); }

TEST(MemoryNeed, AddsUpWhatAllRanksHold)
{
    const MemoryNeed need = needOf(littlePlan(CheckMode::First));
    constexpr double kWeights = 2 * (4 * 4 + 4) * 4;
    constexpr double kData = 3 * 2 * (2 * 4) * 4; // inputs and targets
    EXPECT_EQ(need.standing, 2 * kWeights) << "with gradients";
    EXPECT_EQ(need.data, kData);
    EXPECT_EQ(need.activations, 2 * 3 * 100) << "GPipe keeps all three on both ranks";
    EXPECT_EQ(need.check, 2 * kWeights + kData);
    EXPECT_EQ(needOf(littlePlan(CheckMode::Off)).check, 0);

    Plan plan = littlePlan(CheckMode::Off);
    plan.pipeline.schedule = "1f1b";
    plan.run.optimizer = OptimizerKind::AdamW;
    EXPECT_EQ(needOf(plan).activations, (2 + 1) * 100) << "1F1B keeps p - r on rank r";
    EXPECT_EQ(needOf(plan).standing, 4 * kWeights) << "with two moments";
}

TEST(MemoryNeed, GoesByWhatTheActionsKeep)
{
    Plan plan = littlePlan(CheckMode::Off);
    const double standing = needOf(plan).standing;
    plan.pipeline.recompute = Recompute::Full;
    EXPECT_EQ(needOf(plan).activations, 2 * (3 * 2 * 4 * 4 + 100)) << "three inputs, and one that is computed again";
    plan.pipeline.recompute = Recompute::None;
    plan.pipeline.schedule = "forward-only";
    EXPECT_EQ(needOf(plan).activations, 0) << "nothing comes back";
    plan.pipeline.schedule = "chimera";
    plan.pipeline.microbatches = 2;
    EXPECT_EQ(needOf(plan).standing, 2 * standing) << "two copies of the weights";
    plan.pipeline.schedule = "custom"; // an input gradient gives back all but what W needs, and W the rest
    plan.pipeline.customSchedule = "0F0,0I0,0F1,0I1,0W0,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n";
    plan.costs.wgradBytes = 40;
    EXPECT_EQ(needOf(plan).activations, (40 + 100) + 100);
}

// Two replicas: both have all gradients until they are summed, and gather the other's half of one stage at a time on each of two ranks.
TEST(MemoryNeed, CountsOnceWhatReplicasDivide)
{
    constexpr double kWeights = 2 * (4 * 4 + 4) * 4;
    Plan plan = littlePlan(CheckMode::Off);
    plan.run.optimizer = OptimizerKind::Momentum;
    plan.machine.replicas = 2;
    EXPECT_EQ(needOf(plan).standing, 2 * 3 * kWeights);
    plan.pipeline.sharding = Sharding::Zero2;
    EXPECT_EQ(needOf(plan).standing, (2 + 2 + 1) * kWeights);
    EXPECT_EQ(needOf(plan).gathered, 0);
    plan.pipeline.sharding = Sharding::Zero3;
    EXPECT_EQ(needOf(plan).standing, (1 + 2 + 1) * kWeights);
    EXPECT_EQ(needOf(plan).gathered, kWeights);
}

TEST(MemoryNeed, IsFineOrDoubtfulOrTooMuch)
{
    const MemoryNeed need{.standing = 100e6, .data = 50e6, .activations = 400e6, .check = 0};
    const auto judged = [&](Bytes total, Bytes available) { return judgeMemory(need, {total, available}); };
    EXPECT_EQ(judged(1'000'000'000, 550'000'000).value(), "");
    EXPECT_THAT(judged(1'000'000'000, 549'000'000).value(),
                AllOf(HasSubstr("up to 524.5 MiB"), HasSubstr("523.6 MiB of memory is available"), HasSubstr("smaller micro-batches")));
    EXPECT_TRUE(judged(150'000'000, 1).ok()) << "an activation may turn out smaller";
    const Expected<std::string> refused = judged(149'000'000, 149'000'000);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("143.1 MiB before"), HasSubstr("142.1 MiB is all"), HasSubstr("smaller model")));
    EXPECT_EQ(judged(0, 0).value(), "") << "nobody knows";
}

} // namespace
} // namespace stagecraft::runtime
