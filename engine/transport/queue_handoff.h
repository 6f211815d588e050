// SPDX-License-Identifier: Apache-2.0
//
// The hand-off through queues: one for each boundary between two ranks and each direction, with room for so many tensors; a sender that
// finds its queue full waits. A receiver that comes to its tensors in another order than they were sent sets aside what it takes out
// before its turn. What stays on its rank goes through boxes: nobody could wait there for himself.
//
//   QueueHandoff<at::Tensor> handoff(schedule, {.kind = HandoffKind::Ring, .depth = 2, .patience = patienceFor(ranks), .graph = &graph});
#pragma once

#include "engine/plan/run_spec.h"
#include "engine/runtime/rank_work.h"
#include "engine/transport/local_handoff.h"
#include "engine/transport/mutex_queue.h"
#include "engine/transport/semaphore_ring.h"
#include "engine/transport/spsc_ring.h"
#include "engine/transport/wait_edges.h"

#include <map>
#include <vector>

namespace stagecraft::runtime {

struct QueueOptions {
    engine::HandoffKind kind = engine::HandoffKind::Ring; // not Boxes
    int depth = 0;                                        // 0: as many as there are micro-batches
    Patience patience = {};
    WaitGraph* graph = nullptr; // not owned
};

// `schedule` stays where it is.
template <class Payload>
class QueueHandoff final : public Handoff<Payload> {
public:
    QueueHandoff(const engine::Schedule& schedule, const QueueOptions& options)
        : schedule_(schedule), graph_(options.graph),
          sameRank_(schedule.stages(), mostUnits(schedule), options.patience, static_cast<int>(schedule.flows().size()))
    {
        const auto depth = static_cast<std::size_t>(options.depth > 0 ? options.depth : mostUnits(schedule));
        for (const traces::Flow flow : schedule.flows())
            for (int s = 0; s < schedule.stages(); ++s)
                for (const Direction direction : {Direction::Forward, Direction::Backward})
                    if (exists(direction, s)) ways_[{direction, traces::Stage{s}, {}, flow}].queue = makeQueue(options, depth);
    }

    TimeNs put(const BoxAddress& address, Payload payload, const Clock& clock) override
    {
        if (staysOnItsRank(schedule_, address)) return sameRank_.put(address, std::move(payload), clock);
        Queue& queue = *way(address).queue;
        Item item{address.microbatch, {std::move(payload), clock.now()}};
        TimeNs available = item.arrival.available;
        while (!queue.tryPush(item)) {
            if (queue.cancelled()) break;
            {
                const WaitGraph::Wait wait(graph_, graph_ ? roomEdge(schedule_, address, queue.depth()) : WaitEdge{},
                                           [&queue] { return queue.size() == queue.depth(); });
                queue.waitForRoom();
            }
            available = item.arrival.available = clock.now();
        }
        return available;
    }

    std::optional<Arrival<Payload>> take(const BoxAddress& address) override
    {
        if (staysOnItsRank(schedule_, address)) return sameRank_.take(address);
        Way& from = way(address);
        while (!look(from, address.microbatch)) {
            if (from.queue->cancelled()) return std::nullopt;
            const WaitGraph::Wait wait(graph_, graph_ ? inputEdge(schedule_, address) : WaitEdge{}, [&from] { return from.queue->size() == 0; });
            from.queue->waitForItem();
        }
        std::optional<Arrival<Payload>> arrival(std::move(from.aside.extract(address.microbatch).mapped()));
        return arrival;
    }

    [[nodiscard]] bool full(const BoxAddress& address) override
    {
        return staysOnItsRank(schedule_, address) ? sameRank_.full(address) : look(way(address), address.microbatch);
    }
    [[nodiscard]] bool hasRoom(const BoxAddress& address) override
    {
        if (staysOnItsRank(schedule_, address)) return true;
        const Queue& queue = *way(address).queue;
        return queue.size() < queue.depth();
    }
    [[nodiscard]] bool bounded() const override { return true; }

    void cancel() override
    {
        sameRank_.cancel();
        for (auto& [address, way] : ways_) way.queue->cancel();
    }

private:
    struct Item {
        traces::MicroBatch microbatch{};
        Arrival<Payload> arrival;
    };
    using Queue = BoundedQueue<Item>;
    struct Way {
        std::unique_ptr<Queue> queue;
        std::map<traces::MicroBatch, Arrival<Payload>> aside; // the receiver's
    };

    [[nodiscard]] bool exists(Direction direction, int receiver) const
    {
        return direction == Direction::Forward ? receiver > 0 : receiver + 1 < schedule_.stages();
    }
    static std::unique_ptr<Queue> makeQueue(const QueueOptions& options, std::size_t depth)
    {
        switch (options.kind) {
        case engine::HandoffKind::Mutex: return std::make_unique<MutexQueue<Item>>(depth);
        case engine::HandoffKind::Semaphore: return std::make_unique<SemaphoreRing<Item>>(depth);
        case engine::HandoffKind::Boxes:
        case engine::HandoffKind::Ring: break;
        }
        return std::make_unique<SpscRing<Item>>(depth, options.patience);
    }
    Way& way(const BoxAddress& address) { return ways_.at({address.direction, address.receiver, {}, address.flow}); }

    // Takes out what has come until the one that is looked for is there.
    static bool look(Way& from, traces::MicroBatch wanted)
    {
        while (!from.aside.contains(wanted)) {
            std::optional<Item> item = from.queue->tryPop();
            if (!item) return false;
            from.aside.emplace(item->microbatch, std::move(item->arrival));
        }
        return true;
    }

    const engine::Schedule& schedule_;
    WaitGraph* graph_;
    LocalHandoff<Payload> sameRank_;
    std::map<BoxAddress, Way> ways_; // never changed after the constructor
};

} // namespace stagecraft::runtime
