// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/action_spans.h"

#include <gmock/gmock.h>

namespace stagecraft::runtime {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using traces::Interval;
using traces::MicroBatch;
using traces::Rank;
using traces::Stage;
using traces::Step;
using traces::Work;

const Work kForward = traces::forward(Stage{0}, MicroBatch{1}).work;
const Work kBackward = traces::backward(Stage{1}, MicroBatch{0}).work;

JoinedActivity kernel(int step, const Work& work, Interval span, std::optional<Interval> call = {})
{
    return {KernelActivity{.span = span, .place = {}}, *packWork({.run = 1, .step = Step{step}, .work = work}), call};
}
JoinedActivity copy(int step, const Work& work, Interval span, traces::Bytes bytes)
{
    return {CopyActivity{.span = span, .place = {}, .bytes = bytes}, *packWork({.run = 1, .step = Step{step}, .work = work}), std::nullopt};
}

class ActionSpansTest : public testing::Test {
protected:
    DevicePlaceRanks ranks_{{.run = 1, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {}, .ranksPerReplica = 2}};
    ActionSpans spans_{ranks_};
};

TEST_F(ActionSpansTest, ReachFromTheFirstBeginToTheLastEnd)
{
    spans_.add(kernel(2, kForward, {200, 300}, Interval{50, 60}));
    spans_.add(copy(2, kForward, {150, 180}, 4'096));
    spans_.add(kernel(2, kForward, {310, 360}, Interval{40, 45}));
    spans_.add(kernel(2, kBackward, {400, 500}));
    const ActionSpan forward{.rank = Rank{0}, .step = Step{2}, .work = kForward, .device = {150, 360}, .kernelTime = 150,
                             .copyTime = 30, .kernels = 2, .copies = 1, .copied = 4'096, .firstCall = 40};
    const ActionSpan backward{.rank = Rank{1}, .step = Step{2}, .work = kBackward, .device = {400, 500}, .kernelTime = 100, .kernels = 1};
    EXPECT_THAT(spans_.takeChanged(), ElementsAre(forward, backward));
    EXPECT_EQ(forward.launchDelay(), 110);
    EXPECT_EQ(backward.launchDelay(), std::nullopt);
}

TEST_F(ActionSpansTest, GrowWithEveryBatch)
{
    spans_.add(kernel(0, kForward, {100, 200}));
    EXPECT_EQ(spans_.takeChanged().at(0).device, (Interval{100, 200}));
    EXPECT_THAT(spans_.takeChanged(), IsEmpty());
    spans_.add(kernel(0, kForward, {210, 250}));
    spans_.add(kernel(0, kForward, {90, 95}));
    EXPECT_EQ(spans_.takeChanged().at(0).device, (Interval{90, 250}));
    EXPECT_EQ(spans_.find(Step{0}, Rank{0}, kForward)->kernels, 3);
    EXPECT_EQ(spans_.find(Step{1}, Rank{0}, kForward), std::nullopt);
}

TEST_F(ActionSpansTest, PassOverWhatIsOfNoAction)
{
    spans_.add({KernelActivity{.span = {1, 2}, .place = {}}, kNoWork, std::nullopt});
    spans_.add({KernelActivity{.span = {1, 2}, .place = {}}, *packWork({.run = 2, .step = Step{0}, .work = kForward}), std::nullopt});
    spans_.add({ApiActivity{.span = {1, 2}}, *packWork({.run = 1, .step = Step{0}, .work = kForward}), std::nullopt});
    spans_.add({SyncActivity{.span = {1, 2}}, kNoWork, std::nullopt});
    EXPECT_THAT(spans_.takeChanged(), IsEmpty());
}

TEST_F(ActionSpansTest, OfReplicasAreApart)
{
    for (const int replica : {1, 0, 1}) {
        spans_.add({KernelActivity{.span = {100 + replica, 200 + replica}, .place = {}},
                    *packWork({.run = 1, .step = Step{0}, .work = kBackward, .replica = replica}), std::nullopt});
    }
    const std::vector<ActionSpan> changed = spans_.takeChanged();
    ASSERT_EQ(changed.size(), 2U);
    EXPECT_EQ(changed[0].rank, Rank{1});
    EXPECT_EQ(changed[0].device, (Interval{100, 200}));
    EXPECT_EQ(changed[1].rank, Rank{3});
    EXPECT_EQ(changed[1].kernels, 2);
}

TEST_F(ActionSpansTest, AreForgottenWithTheirSteps)
{
    for (int step = 0; step < 4; ++step) spans_.add(kernel(step, kForward, {100 * step + 10, 100 * step + 20}));
    spans_.forgetBefore(Step{2});
    EXPECT_EQ(spans_.find(Step{1}, Rank{0}, kForward), std::nullopt);
    EXPECT_TRUE(spans_.find(Step{2}, Rank{0}, kForward).has_value());
    EXPECT_EQ(spans_.takeChanged().size(), 2U);
}

} // namespace

} // namespace stagecraft::runtime
