// SPDX-License-Identifier: Apache-2.0
//
// What NCCL's results mean to whoever runs a plan.
//
//   if (result != kNcclSuccess) return ncclError(api, "send to rank 1", result);
//   // "NCCL cannot send to rank 1: another rank has ended, or the connection to it broke (remote process exited or there was a network
//   //  error; last: socket closed). The first error is that rank's: look at its output"
#pragma once

#include "engine/transport/nccl/nccl_api.h"

#include <string>
#include <string_view>

namespace stagecraft::runtime {

inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclInProgress = 7;

// Meaning and remedy. Any number has a text.
struct NcclMeaning {
    std::string_view what;
    std::string_view remedy;
};
NcclMeaning ncclMeaning(NcclResult result);

// With NCCL's own words, and what it said last on this thread.
Error ncclError(const NcclApi& api, std::string_view doing, NcclResult result);

} // namespace stagecraft::runtime
