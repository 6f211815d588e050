// SPDX-License-Identifier: Apache-2.0
//
// PipeDream and PipeDream-2BW: their orders, the weights that each micro-batch goes by, and what validate() says about updates.
#include "unit_costs.h"

#include "engine/schedule/lower.h"
#include "engine/schedule/validate.h"
#include "engine/schedule/weight_versions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

using namespace stagecraft;
using namespace stagecraft::test;
using ::testing::Each;
using ::testing::HasSubstr;

namespace {

engine::Schedule inGroups(int ranks, int microbatches, int group)
{
    return engine::generate({.name = "pipedream-2bw", .ranks = ranks, .microbatches = microbatches, .group = group}).value();
}

TEST(PipeDream, UpdatesAStageAfterEveryBackward)
{
    EXPECT_EQ(engine::toText(made("pipedream", 3, 4)),
              "# updates 1 stashed\n"
              "0F0,0F1,0F2,0B0,0OPTIMIZER0,0F3,0B1,0OPTIMIZER1,0B2,0OPTIMIZER2,0B3,0OPTIMIZER3\n"
              "1F0,1F1,1B0,1OPTIMIZER0,1F2,1B1,1OPTIMIZER1,1F3,1B2,1OPTIMIZER2,1B3,1OPTIMIZER3\n"
              "2F0,2B0,2OPTIMIZER0,2F1,2B1,2OPTIMIZER1,2F2,2B2,2OPTIMIZER2,2F3,2B3,2OPTIMIZER3\n");
}

TEST(PipeDream2Bw, UpdatesAStageAfterEveryGroupAndAfterTheRest)
{
    EXPECT_EQ(engine::toText(made("pipedream-2bw", 2, 5)),
              "# updates 2 double-buffered\n"
              "0F0,0F1,0B0,0F2,0B1,0OPTIMIZER1,0F3,0B2,0F4,0B3,0OPTIMIZER3,0B4,0OPTIMIZER4\n"
              "1F0,1B0,1F1,1B1,1OPTIMIZER1,1F2,1B2,1F3,1B3,1OPTIMIZER3,1F4,1B4,1OPTIMIZER4\n");
}

TEST(PipeDream2Bw, TakesGroupsOfAsManyAsThereAreRanksOrMore)
{
    EXPECT_TRUE(engine::checkRequest({.name = "pipedream-2bw", .ranks = 4, .microbatches = 8, .group = 4}).ok());
    EXPECT_TRUE(engine::checkRequest({.name = "pipedream-2bw", .ranks = 4, .microbatches = 8, .group = 20}).ok());
    for (const int group : {3, 1, -1}) {
        const traces::Expected<void> verdict =
            engine::checkRequest({.name = "pipedream-2bw", .ranks = 4, .microbatches = 8, .group = group});
        ASSERT_FALSE(verdict.ok()) << group;
        EXPECT_THAT(verdict.error().message, HasSubstr("the nearest size that fits is 4"));
    }
}

// Without a flush the forwards and backwards are in the order of 1F1B, whatever the updates.
TEST(AsynchronousSchedules, TakeMicroBatchesInTheOrderOfOneFOneB)
{
    for (const int p : {1, 2, 3, 4, 7})
        for (const int m : {1, 2, 3, 8, 21})
            for (const char* name : {"pipedream", "pipedream-2bw"}) {
                engine::Schedule schedule = made(name, p, m);
                EXPECT_TRUE(schedule.asynchronous());
                EXPECT_TRUE(engine::validate(schedule).legal()) << name << ' ' << p << ' ' << m;
                EXPECT_EQ(engine::parseSchedule(engine::toText(schedule), name).value(), schedule);
                for (std::vector<engine::Action>& list : schedule.order)
                    std::erase_if(list, [](const engine::Action& action) { return action.kind() == engine::ActionKind::Optimizer; });
                EXPECT_EQ(schedule.order, made("1f1b", p, m).order);
            }
}

TEST(AsynchronousSchedules, KeepTheirUpdatesWhenTransfersAreWrittenOut)
{
    const engine::Schedule schedule = inGroups(3, 7, 3);
    const engine::Schedule lowered = engine::lowerCommunication(schedule).value();
    EXPECT_TRUE(engine::validate(lowered, {.send = engine::SendMode::Rendezvous}).legal());
    EXPECT_EQ(engine::withoutCommunication(lowered), schedule);
}

// arXiv 1806.03377 sec. 3.3: w(t+1) = w(t) - lr * grad f(w_1(t-p+1), w_2(t-p+2), ..., w_p(t)): micro-batch t goes on stage r, counted
// from 0, by version t - (p-1-r); before the pipeline is full by the first.
TEST(WeightVersions, AreThoseOfThePaperForPipeDream)
{
    for (const int p : {1, 2, 4, 7})
        for (const int m : {1, 3, 4, 8, 30}) {
            const std::vector<engine::StageVersions> stages = engine::weightVersions(made("pipedream", p, m));
            ASSERT_EQ(stages.size(), static_cast<std::size_t>(p));
            for (int r = 0; r < p; ++r) {
                const engine::StageVersions& stage = stages[static_cast<std::size_t>(r)];
                SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m << " r=" << r);
                EXPECT_EQ(stage.kept, std::min(p - r, m));
                EXPECT_EQ(stage.staleness, std::min(p - 1 - r, m - 1));
                EXPECT_EQ(stage.updates, m);
                for (int t = 0; t < m; ++t) EXPECT_EQ(stage.version[static_cast<std::size_t>(t)], std::max(0, t - (p - 1 - r)));
            }
        }
}

engine::Schedule inStep(int ranks, int microbatches)
{
    return engine::generate({.name = "pipedream", .ranks = ranks, .microbatches = microbatches, .verticalSync = true}).value();
}

// The most versions of a stage's weights that there are at once: the newest, and those that a micro-batch goes by that has not been
// taken back.
int mostVersions(const engine::Schedule& schedule, int rank, const std::vector<int>& version)
{
    int newest = 0;
    int most = 1;
    std::vector<bool> back(version.size(), false);
    for (const engine::Action& action : schedule.order[static_cast<std::size_t>(rank)]) {
        if (action.kind() == engine::ActionKind::Backward) back[static_cast<std::size_t>(action.microbatch().value)] = true;
        if (action.kind() == engine::ActionKind::Optimizer) ++newest;
        std::set<int> there{newest};
        for (std::size_t i = 0; i < version.size(); ++i)
            if (!back[i] && version[i] <= newest) there.insert(version[i]);
        most = std::max(most, static_cast<int>(there.size()));
    }
    return most;
}

// The same section: w(t+1) = w(t) - lr * grad f(w_1(t-p+1), w_2(t-p+1), ..., w_p(t-p+1)).
TEST(WeightVersions, AreOneOnAllStagesWithVerticalSync)
{
    for (const int p : {1, 2, 4, 7})
        for (const int m : {1, 3, 4, 8, 30}) {
            const engine::Schedule schedule = inStep(p, m);
            EXPECT_TRUE(engine::validate(schedule).legal());
            EXPECT_EQ(engine::parseSchedule(engine::toText(schedule), "pipedream").value(), schedule);
            EXPECT_EQ(schedule.order, made("pipedream", p, m).order);
            const std::vector<engine::StageVersions> stages = engine::weightVersions(schedule);
            for (int r = 0; r < p; ++r) {
                const engine::StageVersions& stage = stages[static_cast<std::size_t>(r)];
                SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m << " r=" << r);
                EXPECT_EQ(stage.kept, mostVersions(schedule, r, stage.version));
                if (m >= 2 * p - 1) { // the pipeline is full for long enough
                    EXPECT_EQ(stage.kept, p);
                }
                EXPECT_EQ(stage.staleness, std::min(p - 1, m - 1));
                EXPECT_EQ(stage.updates, m);
                for (int t = 0; t < m; ++t) EXPECT_EQ(stage.version[static_cast<std::size_t>(t)], std::max(0, t - (p - 1)));
            }
        }
    EXPECT_EQ(engine::checkRequest({.name = "1f1b", .verticalSync = true}).error().message,
              "schedule 1f1b: vertical sync is of schedules that keep the weights of each forward, and it does not; use pipedream, or leave it out");
}

// arXiv 2006.09503 sec. 3.1: w(t+1) = w(t) - lr * grad f(w(t-1)), and w(0) where there is no w(-1).
TEST(WeightVersions, AreThoseOfThePaperForPipeDream2Bw)
{
    for (const engine::StageVersions& stage : engine::weightVersions(inGroups(3, 11, 4))) {
        EXPECT_EQ(stage.kept, 2);
        EXPECT_EQ(stage.staleness, 1);
        EXPECT_EQ(stage.updates, 3);
        EXPECT_EQ(stage.version, (std::vector{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
    }
}

TEST(WeightVersions, AreOneWithAFlush)
{
    for (const char* name : {"1f1b", "chimera"})
        for (const engine::StageVersions& stage : engine::weightVersions(made(name, 4, 8))) {
            EXPECT_EQ(stage.kept, 1);
            EXPECT_EQ(stage.staleness, 0);
            EXPECT_EQ(stage.updates, 1);
            EXPECT_THAT(stage.version, Each(0));
        }
}

TEST(WeightVersions, OfARankAreTheMostOfItsStages)
{
    // a rank with both stages: stage 1 gives its gradient at once, stage 0 has two micro-batches in flight
    const engine::Schedule schedule =
        engine::parseSchedule("# updates 1 stashed\n0F0,0F1,1F0,1B0,1OPTIMIZER,1F1,0B0,0OPTIMIZER,1B1,1OPTIMIZER,0B1,0OPTIMIZER\n").value();
    ASSERT_TRUE(engine::validate(schedule).legal());
    const std::vector<engine::StageVersions> stages = engine::weightVersions(schedule);
    EXPECT_EQ(stages[0].kept, 2);
    EXPECT_EQ(stages[1].kept, 1);
    EXPECT_EQ(stages[1].version, (std::vector{0, 1}));
    const engine::StageVersions rank = engine::versionsOfRank(schedule, stages, traces::Rank{0});
    EXPECT_EQ(rank.kept, 2);
    EXPECT_EQ(rank.staleness, 1);
}

std::string firstFault(std::string_view text)
{
    const engine::ValidationReport report = engine::validate(engine::parseSchedule(text).value());
    return report.errors.empty() ? report.legal() ? "legal" : "deadlock" : report.errors.front().message;
}

TEST(ValidateUpdates, TakesOneOfAStageAfterAllItsGradients)
{
    EXPECT_EQ(firstFault("0F0,0F1,0B0,0B1,0OPTIMIZER\n"), "legal");
    EXPECT_EQ(firstFault("0F0,0I0,0W0,0OPTIMIZER\n1F0,1B0\n"), "legal"); // stage 1 is updated when its rank is done
    EXPECT_EQ(firstFault("0F0,1F0,1B0,1OPTIMIZER,0B0,0OPTIMIZER\n"), "legal");
    EXPECT_EQ(firstFault("0F0,0F1,0B0,0OPTIMIZER,0B1\n"),
              "rank 0, position 3: 0OPTIMIZER comes before 0B1 (position 4), whose gradient it needs; move it behind");
    EXPECT_THAT(firstFault("0F0,0I0,0OPTIMIZER,0W0\n"), HasSubstr("0OPTIMIZER comes before 0W0 (position 3), whose gradient it needs"));
    EXPECT_EQ(firstFault("0F0,0B0,0OPTIMIZER,0OPTIMIZER\n"),
              "rank 0, position 3: 0OPTIMIZER is there twice, first at position 2; a synchronous step updates a stage once");
    EXPECT_THAT(firstFault("0F0,0OPTIMIZER\n"), HasSubstr("0OPTIMIZER has nothing to update by, the stage makes no gradient"));
    EXPECT_THAT(firstFault("0F0,0B0\n1F0,1B0,0OPTIMIZER\n"), HasSubstr("rank 1, position 2: 0OPTIMIZER does not belong here, stage 0 is on rank 0"));
}

TEST(ValidateUpdates, TakesOneOfAStageAfterEachGroup)
{
    EXPECT_EQ(firstFault("# updates 2 stashed\n0F0,0B0,0F1,0B1,0OPTIMIZER,0F2,0B2,0OPTIMIZER\n"), "legal");
    EXPECT_EQ(firstFault("# updates 2 stashed\n0F0,0B0,0F1,0B1,0OPTIMIZER1,0F2,0B2,0OPTIMIZER2\n"), "legal");
    EXPECT_EQ(firstFault("# updates 2 stashed\n0F0,0B0,0F1,0B1,0OPTIMIZER,0F2,0B2\n"),
              "rank 0: 0OPTIMIZER2 is missing; the weights of a stage change after every 2 micro-batches");
    EXPECT_EQ(firstFault("# updates 2 stashed\n0F0,0B0,0OPTIMIZER,0F1,0B1,0OPTIMIZER\n"),
              "rank 0, position 2: 0OPTIMIZER comes when 1 gradient of its 2 are there; move it behind them");
    EXPECT_EQ(firstFault("# updates 1 stashed\n0F0,0F1,0B0,0B1,0OPTIMIZER,0OPTIMIZER\n"),
              "rank 0, position 3: 0B1 comes before 0OPTIMIZER0, which is of the micro-batches before it; move it behind");
    EXPECT_EQ(firstFault("# updates 1 stashed\n0F0,0B0,0OPTIMIZER,0OPTIMIZER\n"),
              "rank 0, position 3: 0OPTIMIZER is one too many; 1 micro-batch make 1 update");
    EXPECT_THAT(firstFault("# updates 1 stashed\n0F0,0B0,0OPTIMIZER0,0F1,0B1,0OPTIMIZER0\n"),
                HasSubstr("0OPTIMIZER0 names micro-batch 0, but the update that comes next is after micro-batch 1"));
}

// Group 2 goes by the weights after one update: a forward of it cannot come before that.
TEST(ValidateUpdates, HasTheWeightsOfAForwardWithTwoBuffers)
{
    EXPECT_EQ(firstFault("# updates 1 double-buffered\n0F0,0F1,0B0,0OPTIMIZER,0F2,0B1,0OPTIMIZER,0B2,0OPTIMIZER\n"), "legal");
    EXPECT_EQ(firstFault("# updates 1 double-buffered\n0F0,0F1,0F2,0B0,0OPTIMIZER,0B1,0OPTIMIZER,0B2,0OPTIMIZER\n"),
              "rank 0, position 2: 0F2 comes before 0OPTIMIZER0, whose weights it takes; move it behind");
    EXPECT_EQ(firstFault("# updates 1 stashed\n0F0,0F1,0F2,0B0,0OPTIMIZER,0B1,0OPTIMIZER,0B2,0OPTIMIZER\n"), "legal");
}

// The first stage has had an update when it takes micro-batch 2, so every stage must have had it then.
TEST(ValidateUpdates, HasTheWeightsOfTheFirstStageWithVerticalSync)
{
    const std::string first = "# updates 1 vertical-sync\n0F0,0F1,0B0,0OPTIMIZER,0F2,0B1,0OPTIMIZER,0B2,0OPTIMIZER\n";
    EXPECT_EQ(firstFault(first + "1F0,1B0,1OPTIMIZER,1F1,1B1,1OPTIMIZER,1F2,1B2,1OPTIMIZER\n"), "legal");
    EXPECT_EQ(firstFault(first + "1F0,1B0,1F1,1F2,1OPTIMIZER,1B1,1OPTIMIZER,1B2,1OPTIMIZER\n"),
              "rank 1, position 3: 1F2 comes before 1OPTIMIZER0, whose weights it takes; move it behind");
}

TEST(ParseSchedule, SaysWhatItCannotReadAboutUpdates)
{
    for (const auto& [text, expected] :
         {std::pair{"# updates often\n0F0,0B0\n", "line 1: \"often\" does not say when weights change"},
          {"# updates 2 later\n0F0,0B0\n", "stashed, vertical-sync or double-buffered"},
          {"# updates 0 stashed\n0F0,0B0\n", "line 1: \"0 stashed\""},
          {"# updates 1 stashed\n# slices 2\n0F0,0F1,0B1,0B0\n", "one direction and whole sequences only"},
          {"# updates 1 stashed\nd0F0,d0B0,u0F0,u0B0\n", "one direction and whole sequences only"}}) {
        const traces::Expected<engine::Schedule> schedule = engine::parseSchedule(text);
        ASSERT_FALSE(schedule.ok()) << text;
        EXPECT_THAT(schedule.error().message, HasSubstr(expected));
    }
}

// The updates take their time between the micro-batches, and no others are added at the end.
TEST(AsynchronousSchedules, TakeTheTimeOfTheirUpdates)
{
    engine::CostTable costs = slotCosts(1, kSlot, 2 * kSlot);
    costs.stages[0].optimizer = kSlot;
    EXPECT_EQ(figuresOf(made("pipedream", 1, 5), costs).makespan, 5 * 4 * kSlot);
    EXPECT_EQ(figuresOf(inGroups(1, 5, 2), costs).makespan, (5 * 3 + 3) * kSlot);
}

} // namespace
