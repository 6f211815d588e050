// SPDX-License-Identifier: Apache-2.0
//
// The hand-off between threads of one process: putting is a move and one atomic store, taking waits for that one box.
//
//   LocalHandoff<at::Tensor> handoff(stages, units, patienceFor(ranks), flows);
//   handoff.watch(&graph, [&](const BoxAddress& box) { return inputEdge(schedule, box); });   // tells who waits
#pragma once

#include "engine/transport/handoff.h"
#include "engine/transport/spin_wait.h"
#include "engine/transport/wait_graph.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace stagecraft::runtime {

template <class Payload>
class LocalHandoff final : public Handoff<Payload> {
public:
    // `units`: micro-batches, or slices of them, of the direction that has more.
    LocalHandoff(int stages, int units, const Patience& patience, int flows = 1)
        : stages_(static_cast<std::size_t>(stages)), units_(static_cast<std::size_t>(units)),
          count_(2 * static_cast<std::size_t>(flows) * stages_ * units_), boxes_(new Box[count_]), patience_(patience)
    {
    }

    // Before the first take(): a receiver that is about to sleep says so there.
    void watch(WaitGraph* graph, std::function<WaitEdge(const BoxAddress&)> describe)
    {
        graph_ = graph;
        describe_ = std::move(describe);
    }

    TimeNs put(const BoxAddress& address, Payload payload, const Clock& clock) override
    {
        return put(address, std::move(payload), clock.now());
    }
    // The same with a moment that the caller decides: modelled transfers.
    TimeNs put(const BoxAddress& address, Payload payload, TimeNs available)
    {
        Box& box = at(address);
        box.arrival = {std::move(payload), available};
        std::uint32_t expected = kEmpty;
        if (box.state.compare_exchange_strong(expected, kFull, std::memory_order_acq_rel)) box.state.notify_one();
        return available;
    }

    std::optional<Arrival<Payload>> take(const BoxAddress& address) override
    {
        Box& box = at(address);
        std::uint32_t state = spinWhile(box.state, kEmpty, patience_);
        if (state == kEmpty) {
            const auto missing = [&box] { return box.state.load(std::memory_order_acquire) == kEmpty; };
            const WaitGraph::Wait wait(graph_, graph_ ? describe_(address) : WaitEdge{}, missing);
            state = sleepWhile(box.state, kEmpty);
        }
        if (state == kCancelled) return std::nullopt;
        std::optional<Arrival<Payload>> arrival(std::move(box.arrival));
        box.arrival = {};
        std::uint32_t expected = kFull;
        box.state.compare_exchange_strong(expected, kEmpty, std::memory_order_acq_rel);
        return arrival;
    }

    [[nodiscard]] bool full(const BoxAddress& address) override { return at(address).state.load(std::memory_order_acquire) == kFull; }
    // When a full box became available; only the receiver may ask.
    [[nodiscard]] TimeNs available(const BoxAddress& address) { return at(address).arrival.available; }

    void cancel() override
    {
        for (std::size_t i = 0; i < count_; ++i) {
            boxes_[i].state.store(kCancelled, std::memory_order_release);
            boxes_[i].state.notify_all();
        }
    }

private:
    static constexpr std::uint32_t kEmpty = 0;
    static constexpr std::uint32_t kFull = 1;
    static constexpr std::uint32_t kCancelled = 2;

    struct alignas(64) Box {
        std::atomic<std::uint32_t> state{kEmpty};
        Arrival<Payload> arrival;
    };

    Box& at(const BoxAddress& address)
    {
        const std::size_t flow = address.flow == traces::Flow::Up ? 1 : 0;
        const std::size_t row = 2 * (flow * stages_ + traces::index(address.receiver)) + (address.direction == Direction::Forward ? 0 : 1);
        return boxes_[row * units_ + traces::index(address.microbatch)];
    }

    std::size_t stages_;
    std::size_t units_;
    std::size_t count_;
    std::unique_ptr<Box[]> boxes_;
    Patience patience_;
    WaitGraph* graph_ = nullptr;
    std::function<WaitEdge(const BoxAddress&)> describe_;
};

} // namespace stagecraft::runtime
