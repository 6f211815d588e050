// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/wait_graph.h"

#include <fmt/format.h>

#include <utility>

namespace stagecraft::runtime {

using traces::index;
using traces::Rank;

WaitGraph::WaitGraph(int ranks, std::function<void(const std::string&)> found)
    : found_(std::move(found)), ranks_(static_cast<std::size_t>(ranks))
{
}

// The last one to wait sees all the others: whatever they had brought about before they began to wait is seen by `missing`, for the mutex
// orders it before this look.
WaitGraph::Wait::Wait(WaitGraph* graph, const WaitEdge& edge, std::function<bool()> missing) : graph_(graph), rank_(edge.waiter)
{
    if (graph_ == nullptr) return;
    std::string circle;
    {
        const std::lock_guard lock(graph_->mutex_);
        graph_->ranks_[index(rank_)].waiting = Waiting{edge, std::move(missing)};
        circle = graph_->circleFrom(rank_);
        if (circle.empty() || std::exchange(graph_->told_, true)) return;
    }
    graph_->found_(circle);
}

WaitGraph::Wait::~Wait()
{
    if (graph_ == nullptr) return;
    const std::lock_guard lock(graph_->mutex_);
    graph_->ranks_[index(rank_)].waiting.reset();
}

// Each rank waits for one other, so there is one way to go. A circle that the new edge closes leads back to it.
std::string WaitGraph::circleFrom(Rank first) const
{
    std::string words;
    Rank at = first;
    for (std::size_t steps = 0; steps <= ranks_.size(); ++steps) {
        const RankState& rank = ranks_[index(at)];
        if (!rank.waiting || !rank.waiting->missing()) return {};
        const std::string place = rank.in.kind == traces::ActionKind::None ? "" : fmt::format(" in {}", traces::toText(traces::Action{rank.in, {}}));
        words += fmt::format("{}rank {} waits{} for {}", words.empty() ? "" : ", ", at.value, place, rank.waiting->edge.needs);
        at = rank.waiting->edge.other;
        if (at == first) return words;
    }
    return {}; // leads into a circle that another edge closed
}

} // namespace stagecraft::runtime
