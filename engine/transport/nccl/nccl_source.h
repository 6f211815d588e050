// SPDX-License-Identifier: Apache-2.0
//
// What a run takes for NCCL. Tests have one that no library stands behind (tests/runtime/nccl).
//
//   const Expected<const NcclSource*> nccl = ncclOfProcess();   // loads it, once
//   if (nccl.ok()) NcclClique clique(nccl.value()->ground(clock), ...);
#pragma once

#include "engine/transport/nccl/nccl_context.h"

#include <string>

namespace stagecraft::runtime {

struct NcclSource {
    NcclApi api;
    std::string version; // "2.28.9"; one clique takes one version
    NcclPatience patience = {};
    const Clock* clock = nullptr; // not owned; that patience goes by; none: the run's
};

// Any thread. Errors say why there is none, also in a build without NCCL's header.
Expected<const NcclSource*> ncclOfProcess();

} // namespace stagecraft::runtime
