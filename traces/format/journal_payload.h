// SPDX-License-Identifier: Apache-2.0
//
// What stands inside a journal's records. Times are written as differences to what came before, so writer and reader keep
// the same memory of it and must see the same records in the same order. docs/file-formats.md lists every field.
#pragma once

#include "traces/store/record.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::traces {

// What was last said of each lane declared so far, and of memory of ranks and of GPUs. Begins anew with each InfoRecord: the trace of a run, of
// which a worker sends several one after another.
struct JournalDeltas {
    struct LaneState {
        TimeNs lastEnd = 0;
        std::int64_t slices = 0;
    };
    std::vector<LaneState> lanes;
    TimeNs memoryTime = 0;
    TimeNs gpuTime = 0;
};

unsigned journalType(const Record& record); // 1..14
void appendPayload(std::string& out, const Record& record, JournalDeltas& deltas);

// Nothing for a type that is not known, an error where the payload is not what the type asks for. Fields that a later
// version appends to a payload are passed over.
Expected<std::optional<Record>> readPayload(unsigned type, std::string_view payload, JournalDeltas& deltas);

} // namespace stagecraft::traces
