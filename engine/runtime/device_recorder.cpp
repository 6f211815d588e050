// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/device_recorder.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

using traces::LostRecord;
using traces::NoteKind;
using traces::NoteRecord;
using traces::Record;

DeviceRecorder::DeviceRecorder(RecordNumbers& numbers, RankPlacement placement, const DeviceRecorderOptions& options)
    : ranks_(std::move(placement)), join_({.calls = options.calls}),
      lanes_(ranks_, numbers, {.calls = options.level == traces::TraceLevel::Api, .overhead = options.level == traces::TraceLevel::Api})
{
}

void DeviceRecorder::add(const ActivityBatch& batch, std::vector<Record>& out)
{
    lanes_.addNames(batch.newNames);
    counts_ += batch.counts;
    for (const DeviceActivity& each : batch.activities) join_.add(each, joined_);
    join_.flushed(batch.at, joined_);
    put(out);
    if (batch.counts.lost() > 0) out.push_back(LostRecord{batch.counts.lost()});
}

void DeviceRecorder::finish(std::vector<Record>& out)
{
    join_.finish(joined_);
    put(out);
    for (std::string& sentence : sentences(counts_)) out.push_back(NoteRecord{std::move(sentence)});
    if (lanes_.unattributed() > 0)
        out.push_back(NoteRecord{fmt::format("kernels and copies of the GPUs that belong to no action: {}; they have lanes of their own", lanes_.unattributed()),
                                 NoteKind::Information});
}

void DeviceRecorder::put(std::vector<Record>& out)
{
    for (const JoinedActivity& each : joined_) lanes_.add(each);
    joined_.clear();
    lanes_.flush(out);
}

} // namespace stagecraft::runtime
