// SPDX-License-Identifier: Apache-2.0
//
// The list of one rank in V placement (wavePlacement() with two chunks), written action by action. The rank holds stage r as
// chunk 0, on the way down, and stage 2p-1-r as chunk 1, on the way back; each kind of action takes the micro-batches of a
// chunk in their order.
//
//   VList list(schedule, rank);
//   list.forward(0);        // "0F0" on rank 0
//   list.overlap(1, 0);     // the next forward of chunk 1 with the next backward of chunk 0
#pragma once

#include "engine/schedule/schedule.h"

#include <array>
#include <deque>

namespace stagecraft::engine {

class VList {
public:
    // Actions of micro-batches that the schedule does not have are counted, but not written.
    VList(Schedule& schedule, int rank)
        : list_(schedule.order[static_cast<std::size_t>(rank)]), microbatches_(schedule.microbatches),
          chunks_{{{Stage{rank}}, {Stage{2 * schedule.ranks - 1 - rank}}}}
    {
    }

    void forward(int chunk) { write(traces::forward(at(chunk).stage, MicroBatch{at(chunk).forwards++})); }
    void backward(int chunk) { write(traces::backward(at(chunk).stage, MicroBatch{at(chunk).backwards++})); }
    void inputGrad(int chunk)
    {
        const Pending pending{inputGrads_++, MicroBatch{at(chunk).backwards++}};
        at(chunk).pending.push_back(pending);
        write(traces::inputGrad(at(chunk).stage, pending.microbatch));
    }
    void overlap(int forwardChunk, int backwardChunk)
    {
        Action pair = traces::forward(at(forwardChunk).stage, MicroBatch{at(forwardChunk).forwards++});
        pair.work.kind = ActionKind::Overlap;
        pair.partner = traces::backward(at(backwardChunk).stage, MicroBatch{at(backwardChunk).backwards++}).work;
        write(pair);
    }

    // Input gradients whose weight gradients are still to come.
    [[nodiscard]] bool pending(int chunk) const { return !chunks_[static_cast<std::size_t>(chunk)].pending.empty(); }
    [[nodiscard]] bool pending() const { return pending(0) || pending(1); }
    // The weight gradient of the oldest of them; precondition: there is one.
    void weightGrad(int chunk)
    {
        write(traces::weightGrad(at(chunk).stage, at(chunk).pending.front().microbatch));
        at(chunk).pending.pop_front();
    }
    void weightGrad()
    {
        const bool both = pending(0) && pending(1);
        weightGrad(both ? (at(1).pending.front().number < at(0).pending.front().number ? 1 : 0) : (pending(1) ? 1 : 0));
    }

    [[nodiscard]] int forwards(int chunk) const { return chunks_[static_cast<std::size_t>(chunk)].forwards; }

private:
    struct Pending {
        int number; // among the input gradients of both chunks
        MicroBatch microbatch;
    };
    struct Chunk {
        Stage stage;
        int forwards = 0;
        int backwards = 0; // B and I
        std::deque<Pending> pending = {};
    };

    Chunk& at(int chunk) { return chunks_[static_cast<std::size_t>(chunk)]; }
    void write(const Action& action)
    {
        if (action.microbatch().value < microbatches_) list_.push_back(action);
    }

    std::vector<Action>& list_;
    int microbatches_;
    std::array<Chunk, 2> chunks_;
    int inputGrads_ = 0;
};

} // namespace stagecraft::engine
