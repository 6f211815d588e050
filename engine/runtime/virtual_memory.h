// SPDX-License-Identifier: Apache-2.0
//
// The memory of virtual ranks over virtual time. An action runs as a whole at its begin, so what a copy beside it changes in its middle
// comes later: the samples of a rank's last action wait until nothing can come before them. Private to the runtime.
//
//   memory.add(rank, time, ledger.held());          // in the order of time
//   memory.change(rank, earlier, before, after);    // all later samples that wait hold so much more or less
//   memory.flush(rank, ring);                       // into the trace
#pragma once

#include "engine/probe/event_ring.h"
#include "engine/runtime/run_event.h"

#include <algorithm>
#include <vector>

namespace stagecraft::runtime {

class VirtualMemory {
public:
    explicit VirtualMemory(int ranks) : waiting_(static_cast<std::size_t>(ranks)) {}

    void add(traces::Rank rank, TimeNs time, const BytesByClass& bytes) { waiting_[traces::index(rank)].push_back({time, bytes}); }

    void change(traces::Rank rank, TimeNs time, const BytesByClass& before, const BytesByClass& after)
    {
        std::vector<MemorySample>& samples = waiting_[traces::index(rank)];
        const auto later = std::find_if(samples.begin(), samples.end(), [&](const MemorySample& sample) { return sample.time > time; });
        MemorySample then{time, later == samples.begin() ? before : std::prev(later)->bytes};
        const auto place = samples.insert(later, then);
        for (auto sample = place; sample != samples.end(); ++sample)
            for (std::size_t c = 0; c < after.size(); ++c) sample->bytes[c] += after[c] - before[c];
    }

    void flush(traces::Rank rank, EventRing<RunEvent>& ring)
    {
        for (const MemorySample& sample : waiting_[traces::index(rank)]) ring.push(memoryEvent(sample.time, sample.bytes));
        waiting_[traces::index(rank)].clear();
    }

private:
    std::vector<std::vector<MemorySample>> waiting_; // by rank, in the order of time
};

} // namespace stagecraft::runtime
