// SPDX-License-Identifier: Apache-2.0
//
// The slots of all ranks that a repeated building block is laid into, and the moves within it; building_block.h says what
// for. The rules are those of sail-sg's planners zbv_greedy.py and v1f1b.py, here on a grid that knows what each slot holds.
//
//   SlotGrid grid(m, block, 1);
//   grid.addWeightGrads();
//   grid.squeeze(SlotGrid::Part::FillAndDrain, stop);
#pragma once

#include "engine/schedule/building_block.h"

#include <stop_token>
#include <vector>

namespace stagecraft::engine {

class SlotGrid {
public:
    // What takes a slot.
    enum class Use : std::uint8_t { Forward0, Forward1, Backward1, Backward0, WeightGrad, SecondHalf, Free };
    enum class Part : std::uint8_t {
        All,
        FillAndDrain, // until rank 0's first backward of chunk 0, and from when the last micro-batch has entered
    };

    // A backward takes `backwardSlots` slots: 1, or 2 when its weight gradient is part of it.
    SlotGrid(int microbatches, const std::vector<BlockSlots>& block, int backwardSlots);

    // Puts weight gradients into free slots, as early as they go: the k-th belongs to the k-th input gradient of its rank.
    void addWeightGrads();
    void removeWeightGrads();

    // Moves actions into earlier free slots, in the order of time and rank, wherever their inputs are there and no rank
    // comes to hold more than the fullest held at the beginning. This and the next two give up where `stop` asks for it.
    void squeeze(Part part, const std::stop_token& stop);
    // The same for the drain alone and without weight gradients in the grid, each of which is taken to go into the first
    // free slot, whatever moves.
    void squeezeDrain(const std::stop_token& stop);
    // Closes the gaps: every action begins as soon as its inputs and its rank's actions before it are done.
    void pack(const std::stop_token& stop);

    [[nodiscard]] const std::vector<Use>& uses(int rank) const { return rows_[static_cast<std::size_t>(rank)].uses; }

private:
    struct Row { // of one rank
        std::vector<Use> uses;
        std::vector<int> held;    // chunk activations after each slot
        std::vector<int> pending; // the same of input gradients without their weight gradient, for squeezeDrain()
        std::array<std::vector<int>, 5> slot; // [use][number]
    };
    enum class Phase : std::uint8_t { Fill, Steady, Drain };

    template <class Visit>
    void forEachInTime(const std::stop_token& stop, Visit&& visit);
    std::vector<int>& slots(Row& row, Use use) const { return row.slot[static_cast<std::size_t>(use)]; }
    [[nodiscard]] int end(std::size_t rank, Use use, std::size_t number) const;
    [[nodiscard]] int inputsEnd(std::size_t rank, Use use, std::size_t number) const;
    [[nodiscard]] int inputGradEnd(const Row& row, std::size_t number) const;
    bool stays(Phase& phase, std::size_t rank, Use use, std::size_t number) const;
    void move(Row& row, Use use, std::size_t number, int to);
    int countHeld(Row& row) const;

    int microbatches_;
    int backwardSlots_;
    std::vector<Row> rows_;
};

} // namespace stagecraft::engine
