// SPDX-License-Identifier: Apache-2.0
//
// What a rank held at which moment, onto its ring in the order of time. Of the rank's thread; what others of its threads saw is added by it.
//
//   MemoryTrack memory(ledger, ring);
//   memory.add({begin, before});
//   memory.record();              // what was added since the last time
//   memory.sample(clock.now());   // what is held now
#pragma once

#include "engine/probe/event_ring.h"
#include "engine/probe/memory_ledger.h"
#include "engine/runtime/run_event.h"

#include <algorithm>
#include <vector>

namespace stagecraft::runtime {

class MemoryTrack {
public:
    MemoryTrack(const MemoryLedger& ledger, EventRing<RunEvent>& ring) : ledger_(ledger), ring_(ring) {}

    void add(const MemorySample& sample) { samples_.push_back(sample); }

    // One that came too late is older than what is recorded already.
    void record()
    {
        std::sort(samples_.begin(), samples_.end(), [](const MemorySample& a, const MemorySample& b) { return a.time < b.time; });
        for (const MemorySample& sample : samples_) {
            if (sample.time < recorded_) continue;
            ring_.push(memoryEvent(sample.time, sample.bytes));
            recorded_ = sample.time;
        }
        samples_.clear();
    }

    void sample(TimeNs time)
    {
        add({time, ledger_.held()});
        record();
    }

private:
    const MemoryLedger& ledger_;
    EventRing<RunEvent>& ring_;
    std::vector<MemorySample> samples_; // since the last that was recorded
    TimeNs recorded_ = 0;               // up to then
};

} // namespace stagecraft::runtime
