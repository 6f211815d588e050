// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of runs in several processes: rank 0 writes what all hold, each rank reads what it needs, and the bits are those of threads.
#include "engine/checkpoint/checkpoint.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/team.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace stagecraft::runtime {
namespace {

using namespace engine;
using testing::HasSubstr;
using traces::test::TemporaryFolder;

constexpr int kSteps = 5;
constexpr int kCut = 2;

Plan trained(const FamilyCase& each, OptimizerKind optimizer)
{
    Plan plan = planOf(each);
    plan.run.steps = kSteps;
    plan.run.optimizer = optimizer;
    plan.run.learningRate = 0.01;
    return plan;
}

std::map<std::string, std::vector<std::byte>> tensorsOf(const TensorFile& file)
{
    std::map<std::string, std::vector<std::byte>> all;
    for (const auto& [name, entry] : file.tensors()) {
        std::vector<std::byte>& bytes = all[name];
        bytes.resize(static_cast<std::size_t>(entry.end - entry.begin));
        EXPECT_TRUE(file.read(name, bytes).ok());
    }
    return all;
}

void expectSame(const std::filesystem::path& found, const std::filesystem::path& expected)
{
    const Expected<Checkpoint> one = openCheckpoint(found);
    const Expected<Checkpoint> other = openCheckpoint(expected);
    ASSERT_TRUE(one.ok()) << one.error().message;
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_EQ(one.value().step, other.value().step);
    EXPECT_EQ(tensorsOf(one.value().weights), tensorsOf(other.value().weights));
    EXPECT_EQ(tensorsOf(one.value().optimizer), tensorsOf(other.value().optimizer));
}

std::vector<double> lossOf(const Outcome& outcome)
{
    EXPECT_TRUE(outcome.result) << (outcome.failure ? outcome.failure->text : "not started");
    return outcome.result ? outcome.result->loss : std::vector<double>{};
}

class KeptInProcesses : public testing::TestWithParam<FamilyCase> {};
INSTANTIATE_TEST_SUITE_P(Runtime, KeptInProcesses,
                         testing::Values(FamilyCase{"1f1b", 3, 1, 4, RunMode::Processes}, FamilyCase{"interleaved", 2, 2, 4, RunMode::Processes},
                                         FamilyCase{"zb-v", 2, 2, 4, RunMode::Processes}, FamilyCase{"dualpipe", 4, 1, 8, RunMode::Processes},
                                         FamilyCase{"pipedream", 2, 1, 4, RunMode::Processes}),
                         [](const auto& each) { return caseName(each.param.name, each.param.mode); });

// Written in both modes, and gone on from in the other.
TEST_P(KeptInProcesses, IsToTheBitWhatThreadsKeepAndGoesOnInEither)
{
    const TemporaryFolder folder;
    Plan plan = trained(GetParam(), OptimizerKind::AdamW);
    plan.run.checkpointEvery = kCut;
    plan.run.checkpoint = folder.file("processes");
    const std::vector<double> loss = lossOf(runTeam(plan).ranks[0]);
    Plan threads = plan;
    threads.run.mode = RunMode::Threads;
    threads.run.checkpoint = folder.file("threads");
    EXPECT_EQ(lossOf(runPlan(threads)), loss);
    for (const char* step : {"step-0000002", "step-0000005"})
        expectSame(folder.file(std::string("processes/") + step), folder.file(std::string("threads/") + step));

    ASSERT_EQ(loss.size(), static_cast<std::size_t>(kSteps));
    const std::vector<double> rest{loss.begin() + kCut, loss.end()};
    plan.run.resume = folder.file("threads/step-0000002");
    plan.run.checkpoint = folder.file("goes-on");
    const TeamOutcome team = runTeam(plan);
    EXPECT_EQ(lossOf(team.ranks[0]), rest);
    EXPECT_EQ(team.ranks[0].result->gradientCheck, GradientCheck::Bitwise);
    EXPECT_EQ(team.ranks[1].trace.steps().front().step, traces::Step{kCut});
    expectSame(folder.file("goes-on"), folder.file("threads"));
    threads.run.resume = folder.file("processes/step-0000002");
    threads.run.checkpoint = folder.file("goes-on-in-threads");
    EXPECT_EQ(lossOf(runPlan(threads)), rest);
    expectSame(folder.file("goes-on-in-threads"), folder.file("threads"));
}

// A tied table is held by two ranks and kept once; momentum has another state than Adam, and the learning rate has a course.
TEST(ProcessCheckpoint, KeepsATiedTableOnceAndEveryOptimizersState)
{
    for (const OptimizerKind optimizer : {OptimizerKind::Sgd, OptimizerKind::Momentum}) {
        const TemporaryFolder folder;
        Plan plan = trained({"gpipe", 2, 1, 4, RunMode::Processes}, optimizer);
        plan.model.tiedEmbeddings = true;
        plan.run.check = CheckMode::Off;
        plan.run.checkpoint = folder.file("processes");
        lossOf(runTeam(plan).ranks[0]);
        plan.run.mode = RunMode::Threads;
        plan.run.checkpoint = folder.file("threads");
        lossOf(runPlan(plan));
        expectSame(folder.file("processes"), folder.file("threads"));
    }
}

TEST(ProcessCheckpoint, NamesWhatIsMissingForAll)
{
    const TemporaryFolder folder;
    Plan plan = trained({"1f1b", 2, 1, 4, RunMode::Processes}, OptimizerKind::Sgd);
    plan.run.resume = folder.file("nowhere");
    EXPECT_THAT(runTeam(plan).refusals, testing::Each(HasSubstr("nowhere: it does not exist")));
}

} // namespace
} // namespace stagecraft::runtime
