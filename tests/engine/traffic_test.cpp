// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a step over all ways, A bytes a boundary: loop placement 2 m A (p v - 1), V placement 2 m A 2 (p - 1), whose turns stay
// on a rank (arXiv 2104.04473 sec. 2.2; 2405.15362 table 1); two directions with half the micro-batches each as one direction.
#include "unit_costs.h"

#include "engine/explain/traffic.h"

#include <algorithm>
#include <numeric>

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

engine::CostTable sending(int stages, traces::Bytes bytes)
{
    engine::CostTable costs = slotCosts(stages, kSlot, 2 * kSlot);
    for (engine::StageCosts& stage : costs.stages) stage.outputBytes = bytes;
    return costs;
}

traces::Bytes total(const std::vector<engine::LinkTraffic>& links)
{
    return std::accumulate(links.begin(), links.end(), traces::Bytes{0}, [](traces::Bytes sum, const auto& link) { return sum + link.bytes; });
}

TEST(Traffic, IsWhatThePlacementsSend)
{
    constexpr traces::Bytes kA = 1000;
    EXPECT_EQ(total(engine::trafficOf(made("1f1b", 4, 8), sending(4, kA))), 2 * 8 * kA * 3);
    EXPECT_EQ(total(engine::trafficOf(made("interleaved", 4, 8, 2), sending(8, kA))), 2 * 8 * kA * 7);
    EXPECT_EQ(total(engine::trafficOf(made("zb-v", 4, 8, 2), sending(8, kA))), 2 * 8 * kA * 2 * 3);
    EXPECT_EQ(total(engine::trafficOf(made("dualpipe", 4, 8), sending(4, kA))), 2 * 8 * kA * 3);
}

// BPipe's copies: each OFFLOAD sends a micro-batch's activations to the partner, each RELOAD fetches them.
TEST(Traffic, CountsWhatGoesToThePartnerAndBack)
{
    constexpr traces::Bytes kActivations = 500;
    const engine::Schedule schedule = made("bpipe", 8, 16);
    engine::CostTable costs = sending(8, 1000);
    for (engine::StageCosts& stage : costs.stages) stage.activationBytes = kActivations;
    const auto copies = std::count_if(schedule.order[0].begin(), schedule.order[0].end(),
                                      [](const engine::Action& action) { return action.kind() == engine::ActionKind::Offload; });
    ASSERT_GT(copies, 0);
    int found = 0;
    for (const engine::LinkTraffic& link : engine::trafficOf(schedule, costs)) {
        const bool away = link.from == traces::Rank{0} && link.to == traces::Rank{7};
        const bool back = link.from == traces::Rank{7} && link.to == traces::Rank{0};
        if (!away && !back) continue;
        ++found;
        EXPECT_EQ(link.messages, copies);
        EXPECT_EQ(link.copies, copies);
        EXPECT_EQ(link.copiedBytes, link.bytes);
        EXPECT_EQ(link.bytes, copies * kActivations);
        EXPECT_DOUBLE_EQ(link.requiredBytesPerSecond, away ? 500 / 1e-3 : 500 / 2e-3); // within a forward, within a backward
    }
    EXPECT_EQ(found, 2);
}

TEST(Traffic, TellsHowFastAWayMustBeToKeepUp)
{
    engine::CostTable costs = sending(2, 3000);
    costs.machine.ranksPerNode = 1;
    const std::vector<engine::LinkTraffic> links = engine::trafficOf(made("1f1b", 2, 5), costs);
    ASSERT_EQ(links.size(), 2U);
    EXPECT_EQ(links[0].from, traces::Rank{0});
    EXPECT_EQ(links[0].messages, 5);
    EXPECT_TRUE(links[0].betweenNodes);
    EXPECT_DOUBLE_EQ(links[0].requiredBytesPerSecond, 3e6); // 3000 bytes in a forward of 1 ms
    EXPECT_DOUBLE_EQ(links[1].requiredBytesPerSecond, 1.5e6);
}

} // namespace
