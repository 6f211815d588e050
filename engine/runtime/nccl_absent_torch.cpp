// SPDX-License-Identifier: Apache-2.0
//
// In the place of NCCL, in a build for which there was no header of it.
#include "engine/runtime/nccl_collectives_torch.h"
#include "engine/runtime/nccl_run_torch.h"
#include "engine/transport/nccl/nccl_source.h"

#include <stdexcept>

namespace stagecraft::runtime {

namespace {

constexpr const char* kWhy = "this build has none: when it was configured, the wheel nvidia-nccl-cu13 with its header nccl.h was not there";

} // namespace

Expected<const NcclSource*> ncclOfProcess() { return Error{kWhy}; }

Expected<NcclId> newNcclId(const NcclApi&) { return Error{kWhy}; }

std::unique_ptr<DeviceCollectives> ncclCollectives(const std::vector<Execution>&, const NcclSource&) { throw std::logic_error(kWhy); }

std::unique_ptr<NcclRun> connectNccl(const Execution&, ProcessRun&, const HandoffPlace&, const NcclWish&) { throw std::logic_error(kWhy); }

} // namespace stagecraft::runtime
