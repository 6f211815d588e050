// SPDX-License-Identifier: Apache-2.0
//
// What a user reads where CUPTI refuses: what failed, why, what to do. By CUPTI's own number, so that nobody but the units
// that call it needs its headers. Pure.
//
//   if (result != CUPTI_SUCCESS) return cuptiError("recording of kernels", result);
//   // "recording of kernels is not possible: another profiler is attached to this process. Close it ... (CUPTI error 39,
//   //  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)"
#pragma once

#include "traces/base/expected.h"

#include <string_view>

namespace stagecraft::runtime {

// `what` is a noun. `detail` is put behind the reason: the name of the other profiler.
traces::Error cuptiError(std::string_view what, int code, std::string_view detail = {});

} // namespace stagecraft::runtime
