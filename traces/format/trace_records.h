// SPDX-License-Identifier: Apache-2.0
//
// Walks a trace as the records that make it, in an order that apply() takes and in which a stream that breaks off is a
// useful shorter trace: declarations first, then slices, memory and steps by time, each edge as soon as both its ends are
// there. Nothing is built in memory, so that a trace of ten million slices can be written.
#pragma once

#include "traces/store/record.h"

#include <functional>

namespace stagecraft::traces {

void forEachRecord(const Trace& trace, const std::function<void(const Record&)>& visit);

} // namespace stagecraft::traces
