// SPDX-License-Identifier: Apache-2.0
//
// From CUPTI's buffers to plain values. It steps with the library's own function alone, because a newer release has longer
// records, and reads of a record what it knows. One thread, which is never one of CUPTI's own.
//
//   ActivityDecoder decoder(library);
//   decoder.decode(buffer->records(), {.level = TraceLevel::Kernels, .clockOffset = offset}, batch);
#pragma once

#include "engine/probe/cupti/cupti_library.h"
#include "engine/probe/cupti/device_activity.h"
#include "engine/probe/cupti/activity_names.h"
#include "traces/base/trace_level.h"

#include <span>
#include <unordered_map>

namespace stagecraft::runtime {

using traces::TraceLevel;

struct DecodeOptions {
    TraceLevel level = TraceLevel::Api; // kinds that only a higher one records are passed over
    traces::TimeNs clockOffset = 0;     // makes CUPTI's time the host's monotonic one
};

class ActivityDecoder {
public:
    explicit ActivityDecoder(std::shared_ptr<const CuptiLibrary> library, NameReader readName = demangled);

    // Adds to the batch what lies in the valid part of one buffer.
    void decode(std::span<std::uint8_t> records, const DecodeOptions& options, ActivityBatch& batch);

private:
    NameId nameOfCall(ApiSide side, std::uint32_t function);

    std::shared_ptr<const CuptiLibrary> library_;
    ActivityNames names_;
    std::unordered_map<std::uint64_t, NameId> calls_; // by side and number
};

} // namespace stagecraft::runtime
