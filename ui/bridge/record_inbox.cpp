// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/record_inbox.h"

#include <utility>

namespace stagecraft::ui {

using namespace traces;

bool RecordInbox::keep(const Record& record)
{
    const bool full = records_.size() >= capacity_;
    if (const auto* slice = std::get_if<SliceRecord>(&record)) {
        if (full) lossyLanes_.insert(slice->lane);
        return !full;
    }
    if (const auto* edge = std::get_if<EdgeRecord>(&record))
        return !full && !lossyLanes_.contains(edge->edge.from.lane) && !lossyLanes_.contains(edge->edge.to.lane);
    if (std::holds_alternative<MemoryRecord>(record) || std::holds_alternative<GpuMemoryRecord>(record)) return !full;
    return true;
}

void RecordInbox::push(std::vector<Record>&& records)
{
    const std::lock_guard lock(mutex_);
    for (Record& record : records) {
        if (keep(record)) records_.push_back(std::move(record));
        else ++lost_;
    }
}

RecordInbox::Contents RecordInbox::take()
{
    const std::lock_guard lock(mutex_);
    return {std::exchange(records_, {}), std::exchange(lost_, 0)};
}

void RecordInbox::beginRun()
{
    const std::lock_guard lock(mutex_);
    lossyLanes_.clear();
}

} // namespace stagecraft::ui
