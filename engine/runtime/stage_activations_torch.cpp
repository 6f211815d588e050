// SPDX-License-Identifier: Apache-2.0
//
// What a stage keeps of its units for their backwards, as the run tells or moves it (StageModule).
#include "engine/runtime/stage_torch.h"

#include "engine/probe/tagging_allocator.h"

#include <algorithm>
#include <utility>

namespace stagecraft::runtime {

using at::Tensor;

Tensor StageModule::runWatched(int unit, InFlight& kept, traces::Step step)
{
    if (!watches_) return run(unit, kept, step);
    Tensor output;
    {
        const SavedTensors::Scope scope(kept.saved);
        output = run(unit, kept, step);
    }
    settleSaved(unit, kept);
    return output;
}

void StageModule::settleSaved(int unit, InFlight& kept)
{
    kept.saved.note(kept.input);
    kept.saved.settle();
    if (!lengths_.empty()) // the slices behind read the keys and values of this one
        for (const KeysAndValues& cache : cachesOf(unit))
            for (const std::vector<Tensor>* leaves : {&cache.keys, &cache.values})
                for (const Tensor& leaf : *leaves) kept.saved.leaveHere(leaf);
    most_.saved = std::max(most_.saved, kept.saved.bytes());
}

// To a rank that holds it for itself.
Tensor StageModule::givenAway(Tensor output, const InFlight& kept) const
{
    if (kept.saved.holds(output)) {
        const AllocationScope scope({.ledger = ledger_, .memory = MemoryClass::Buffers});
        return output.clone();
    }
    reclass(output.storage().data_ptr(), MemoryClass::Buffers);
    return output;
}

Bytes StageModule::keptBytes(int unit) const
{
    const InFlight& kept = inFlight_[static_cast<std::size_t>(unit)];
    return kept.saved.bytes() + kept.forWeights;
}

Bytes StageModule::takeKeptChange(int unit)
{
    const Bytes now = keptBytes(unit);
    return now - std::exchange(told_[static_cast<std::size_t>(unit)], now);
}

engine::StageActivations StageModule::activations() const
{
    engine::StageActivations result = most_;
    std::vector<Bytes> booked = booked_;
    if (booked.empty()) return result;
    const auto middle = booked.begin() + static_cast<std::ptrdiff_t>(booked.size() / 2);
    std::nth_element(booked.begin(), middle, booked.end());
    result.booked = *middle;
    return result;
}

} // namespace stagecraft::runtime
