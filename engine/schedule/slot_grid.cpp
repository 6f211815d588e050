// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/slot_grid.h"

#include <algorithm>

namespace stagecraft::engine {
namespace {

using Use = SlotGrid::Use;

constexpr int kPeriod = 6; // two chunks, each with a forward, an input and a weight gradient

bool isForward(Use use) { return use == Use::Forward0 || use == Use::Forward1; }
bool isInputGrad(Use use) { return use == Use::Backward1 || use == Use::Backward0; }

// A rank's memory when weight gradients are not laid but taken to go into the first free slot.
struct Memory {
    int held = 0;
    int pending = 0;

    void pass(Use use)
    {
        if (isForward(use)) ++held;
        else if (isInputGrad(use)) ++pending;
        else if (pending > 0) {
            --pending;
            --held;
        }
    }
    bool operator==(const Memory&) const = default;
};

} // namespace

SlotGrid::SlotGrid(int microbatches, const std::vector<BlockSlots>& block, int backwardSlots)
    : microbatches_(microbatches), backwardSlots_(backwardSlots), rows_(block.size())
{
    for (std::size_t r = 0; r < block.size(); ++r) {
        Row& row = rows_[r];
        const int last = *std::max_element(block[r].begin(), block[r].end()) + kPeriod * (microbatches - 1);
        row.uses.assign(static_cast<std::size_t>(last + backwardSlots), Use::Free);
        for (std::size_t k = 0; k < block[r].size(); ++k)
            for (int i = 0; i < microbatches; ++i) {
                const int at = block[r][k] + kPeriod * i;
                row.slot[k].push_back(at);
                row.uses[static_cast<std::size_t>(at)] = static_cast<Use>(k);
                if (backwardSlots == 2 && isInputGrad(static_cast<Use>(k)))
                    row.uses[static_cast<std::size_t>(at) + 1] = Use::SecondHalf;
            }
    }
}

void SlotGrid::addWeightGrads()
{
    for (Row& row : rows_) {
        int pending = 0;
        std::vector<int>& laid = slots(row, Use::WeightGrad);
        for (std::size_t at = 0; at < row.uses.size() || pending > 0; ++at) {
            if (at == row.uses.size()) row.uses.push_back(Use::Free);
            if (isInputGrad(row.uses[at])) ++pending;
            if (row.uses[at] != Use::Free || pending == 0) continue;
            --pending;
            row.uses[at] = Use::WeightGrad;
            laid.push_back(static_cast<int>(at));
        }
    }
}

void SlotGrid::removeWeightGrads()
{
    for (Row& row : rows_) {
        std::replace(row.uses.begin(), row.uses.end(), Use::WeightGrad, Use::Free);
        slots(row, Use::WeightGrad).clear();
    }
}

// Goes through what there is, slot by slot over all ranks; what is visited may be moved to a slot before.
template <class Visit>
void SlotGrid::forEachInTime(const std::stop_token& stop, Visit&& visit)
{
    std::vector<std::array<std::size_t, 5>> passed(rows_.size());
    std::size_t end = 0;
    for (const Row& row : rows_) end = std::max(end, row.uses.size());
    for (std::size_t at = 0; at < end && !stop.stop_requested(); ++at)
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            if (at >= rows_[r].uses.size()) continue;
            const Use use = rows_[r].uses[at];
            if (use < Use::SecondHalf) visit(static_cast<int>(at), r, use, passed[r][static_cast<std::size_t>(use)]++);
        }
}

int SlotGrid::end(std::size_t rank, Use use, std::size_t number) const
{
    return rows_[rank].slot[static_cast<std::size_t>(use)][number] + (isInputGrad(use) ? backwardSlots_ : 1);
}

// When the k-th input gradient of a rank, whatever the chunk, has ended.
int SlotGrid::inputGradEnd(const Row& row, std::size_t number) const
{
    const std::vector<int>& chunk1 = row.slot[static_cast<std::size_t>(Use::Backward1)];
    const std::vector<int>& chunk0 = row.slot[static_cast<std::size_t>(Use::Backward0)];
    const std::size_t wanted = number + 1;
    std::size_t low = wanted - std::min(wanted, chunk0.size()); // how many of the first `wanted` are chunk 1's: low to high
    std::size_t high = std::min(wanted, chunk1.size());
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (chunk1[middle] < chunk0[wanted - middle - 1]) low = middle + 1;
        else high = middle;
    }
    const int last1 = low > 0 ? chunk1[low - 1] : -1;
    const int last0 = wanted > low ? chunk0[wanted - low - 1] : -1;
    return std::max(last0, last1) + 1;
}

// When all that an action needs has ended.
int SlotGrid::inputsEnd(std::size_t rank, Use use, std::size_t number) const
{
    int ready = 0;
    const auto after = [&](int moment) { ready = std::max(ready, moment); };
    const bool down = use == Use::Forward0 || use == Use::Backward1; // comes from the rank before
    if (use == Use::WeightGrad) after(inputGradEnd(rows_[rank], number));
    else if (down && rank > 0) after(end(rank - 1, use, number));
    else if (!down && rank + 1 < rows_.size()) after(end(rank + 1, use, number));
    if (use != Use::WeightGrad && use != Use::Forward0)
        after(end(rank, static_cast<Use>(static_cast<int>(use) - 1), number));
    if (number > 0) after(end(rank, use, number - 1));
    return ready;
}

int SlotGrid::countHeld(Row& row) const
{
    int peak = 0;
    int held = 0;
    row.held.clear();
    for (const Use use : row.uses) {
        if (isForward(use)) ++held;
        if (use == Use::WeightGrad || use == Use::SecondHalf) --held;
        row.held.push_back(held);
        peak = std::max(peak, held);
    }
    return peak;
}

void SlotGrid::move(Row& row, Use use, std::size_t number, int to)
{
    int& slot = slots(row, use)[number];
    const bool twoSlots = isInputGrad(use) && backwardSlots_ == 2;
    row.uses[static_cast<std::size_t>(slot)] = Use::Free;
    if (twoSlots) row.uses[static_cast<std::size_t>(slot) + 1] = Use::Free;
    row.uses[static_cast<std::size_t>(to)] = use;
    if (twoSlots) row.uses[static_cast<std::size_t>(to) + 1] = Use::SecondHalf;
    slot = to;
}

// Whether an action keeps its slot; follows the phase.
bool SlotGrid::stays(Phase& phase, std::size_t rank, Use use, std::size_t number) const
{
    if (phase == Phase::Fill && rank == 0 && use == Use::Backward0) phase = Phase::Steady;
    if (phase != Phase::Steady) return false;
    if (use == Use::Forward0 && number + 1 == static_cast<std::size_t>(microbatches_)) phase = Phase::Drain;
    return true;
}

void SlotGrid::squeeze(Part part, const std::stop_token& stop)
{
    int limit = 0;
    for (Row& row : rows_) limit = std::max(limit, countHeld(row));
    Phase phase = Phase::Fill;
    forEachInTime(stop, [&](int at, std::size_t r, Use use, std::size_t number) {
        if (part == Part::FillAndDrain && stays(phase, r, use, number)) return;
        Row& row = rows_[r];
        const auto full = [&](int slot) { return row.held[static_cast<std::size_t>(slot)] >= limit; };
        const auto free = [&](int slot) { return row.uses[static_cast<std::size_t>(slot)] == Use::Free; };
        const int length = isInputGrad(use) ? backwardSlots_ : 1;
        int to = inputsEnd(r, use, number);
        if (isForward(use)) { // behind the last slot at which the rank is full
            int room = at;
            while (room > to && !full(room - 1)) --room;
            to = room;
        }
        while (to < at && !(free(to) && (length == 1 || (to + 1 < at && free(to + 1))))) ++to;
        if (to >= at) return;
        move(row, use, number, to);
        const int change = isForward(use) ? 1 : use == Use::WeightGrad || length == 2 ? -1 : 0;
        for (int slot = to + length - 1; slot < at + length - 1; ++slot) row.held[static_cast<std::size_t>(slot)] += change;
    });
}

void SlotGrid::squeezeDrain(const std::stop_token& stop)
{
    int limit = 0;
    // from `first` on, until nothing is new
    const auto count = [&](Row& row, int first, int until, const auto& useAt, const auto& see) {
        Memory memory;
        if (first > 0)
            memory = {row.held[static_cast<std::size_t>(first) - 1], row.pending[static_cast<std::size_t>(first) - 1]};
        for (auto at = static_cast<std::size_t>(first); at < row.uses.size(); ++at) {
            memory.pass(useAt(at));
            const bool known = static_cast<int>(at) >= until && memory == Memory{row.held[at], row.pending[at]};
            if (!see(at, memory) || known) return;
        }
    };
    for (Row& row : rows_) {
        row.held.assign(row.uses.size(), 0);
        row.pending.assign(row.uses.size(), 0);
        const auto keep = [&](std::size_t at, const Memory& memory) {
            row.held[at] = memory.held;
            row.pending[at] = memory.pending;
            limit = std::max(limit, memory.held);
            return true;
        };
        count(
            row, 0, static_cast<int>(row.uses.size()), [&](std::size_t at) { return row.uses[at]; }, keep);
    }
    Phase phase = Phase::Fill;
    forEachInTime(stop, [&](int at, std::size_t r, Use use, std::size_t number) {
        if (stays(phase, r, use, number) || phase == Phase::Fill) return;
        Row& row = rows_[r];
        for (int to = inputsEnd(r, use, number); to < at; ++to) {
            if (row.uses[static_cast<std::size_t>(to)] != Use::Free) continue;
            bool fits = true;
            const auto moved = [&](std::size_t slot) {
                if (slot == static_cast<std::size_t>(to)) return use;
                return slot == static_cast<std::size_t>(at) ? Use::Free : row.uses[slot];
            };
            count(row, to, at, moved, [&](std::size_t, const Memory& memory) { return fits = memory.held <= limit; });
            if (!fits) continue;
            count(row, to, at, moved, [&](std::size_t slot, const Memory& memory) {
                row.held[slot] = memory.held;
                row.pending[slot] = memory.pending;
                return true;
            });
            return move(row, use, number, to);
        }
    });
}

void SlotGrid::pack(const std::stop_token& stop)
{
    std::vector<int> clock(rows_.size(), 0);
    forEachInTime(stop, [&](int at, std::size_t r, Use use, std::size_t number) {
        const int to =
            std::max(clock[r], use == Use::WeightGrad ? 0 : inputsEnd(r, use, number)); // a W is behind its I in the order
        clock[r] = to + 1;
        if (to < at) move(rows_[r], use, number, to);
    });
    for (std::size_t r = 0; r < rows_.size(); ++r) rows_[r].uses.resize(static_cast<std::size_t>(clock[r]));
}

} // namespace stagecraft::engine
