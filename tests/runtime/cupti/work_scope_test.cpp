// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/work_scope.h"

#include "engine/probe/cupti/cupti_api_cupti.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace stagecraft::runtime {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;

thread_local std::vector<WorkId> stack; // of the calling thread, as CUPTI keeps it
CUptiResult pushResult = CUPTI_SUCCESS;

std::shared_ptr<const CuptiLibrary> library()
{
    CuptiApi api;
    api.pushExternalCorrelation = [](CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
        EXPECT_EQ(kind, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
        if (pushResult == CUPTI_SUCCESS) stack.push_back(id);
        return pushResult;
    };
    api.popExternalCorrelation = [](CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
        EXPECT_EQ(kind, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
        if (stack.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
        if (last != nullptr) *last = stack.back();
        stack.pop_back();
        return CUPTI_SUCCESS;
    };
    return std::make_shared<CuptiLibrary>(api, "test", 130'001);
}

WorkId idOf(std::uint32_t run, int step, const traces::Action& action)
{
    return *packWork({.run = run, .step = Step{step}, .work = action.work});
}

class WorkScopes : public testing::Test {
protected:
    void SetUp() override
    {
        stack.clear();
        pushResult = CUPTI_SUCCESS;
    }
    const traces::Action forward_ = traces::forward(Stage{1}, MicroBatch{2});
    const traces::Action backward_ = traces::backward(Stage{1}, MicroBatch{0});
    WorkMarks marks_{library()};
};

TEST_F(WorkScopes, StackOnTheThreadThatLaunches)
{
    marks_.begin(7);
    {
        const WorkScope outer(&marks_, Step{3}, forward_.work);
        EXPECT_THAT(stack, ElementsAre(idOf(7, 3, forward_)));
        {
            const WorkScope inner(&marks_, Step{4}, backward_.work);
            EXPECT_THAT(stack, ElementsAre(idOf(7, 3, forward_), idOf(7, 4, backward_)));
            std::jthread([] { EXPECT_THAT(stack, IsEmpty()); });
        }
        EXPECT_THAT(stack, ElementsAre(idOf(7, 3, forward_)));
    }
    EXPECT_THAT(stack, IsEmpty());
}

TEST_F(WorkScopes, DoNothingWhileNothingIsRecorded)
{
    const WorkScope none(nullptr, Step{0}, forward_.work);
    const WorkScope off(&marks_, Step{0}, forward_.work);
    EXPECT_THAT(stack, IsEmpty());
}

// A recording that begins or ends within a scope leaves the thread's stack as it was.
TEST_F(WorkScopes, TakeBackExactlyWhatTheySet)
{
    {
        const WorkScope before(&marks_, Step{0}, forward_.work);
        marks_.begin(1);
        const WorkScope within(&marks_, Step{0}, backward_.work);
        marks_.end();
        const WorkScope after(&marks_, Step{0}, backward_.work);
        EXPECT_THAT(stack, ElementsAre(idOf(1, 0, backward_)));
    }
    EXPECT_THAT(stack, IsEmpty());
}

TEST_F(WorkScopes, CountWhatCannotBeSet)
{
    marks_.begin(1);
    {
        const WorkScope tooFar(&marks_, Step{0}, traces::forward(Stage{kMostMarkedStage + 1}, MicroBatch{0}).work);
        pushResult = CUPTI_ERROR_NOT_INITIALIZED;
        const WorkScope refused(&marks_, Step{0}, forward_.work);
    }
    EXPECT_THAT(stack, IsEmpty());
    EXPECT_EQ(marks_.failed(), 2);
}

} // namespace

} // namespace stagecraft::runtime
