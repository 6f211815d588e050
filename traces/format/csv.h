// SPDX-License-Identifier: Apache-2.0
//
// Actions of a trace as CSV (RFC 4180, lines end with CR LF), one a row, for spreadsheets and scripts. Columns:
//
//   step,rank,lane,stage,microbatch,action,kind,begin_ns,end_ns,duration_ns
//
// lane is compute, transfer or stream; action is the text form ("0F0") or the name of a slice that is no action, and then
// kind, stage and microbatch are empty; microbatch is empty as well where an action has none. Rows come lane by lane in the
// order of time. Times are those of the trace's clock.
#pragma once

#include "traces/store/trace.h"

#include <functional>
#include <string_view>

namespace stagecraft::traces {

void writeCsv(const Trace& trace, const std::function<void(std::string_view)>& sink);

} // namespace stagecraft::traces
