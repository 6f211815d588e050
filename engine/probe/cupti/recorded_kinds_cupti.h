// SPDX-License-Identifier: Apache-2.0
//
// Which of CUPTI's records are asked for, by level. Only for units that may include CUPTI's headers.
//
//   for (const RecordedKind& each : kRecordedKinds)
//       if (each.from <= level) api.activityEnable(each.kind);
#pragma once

#include "traces/base/trace_level.h"

#include <array>
#include <cupti.h>
#include <string_view>

namespace stagecraft::runtime {

using traces::TraceLevel;

struct RecordedKind {
    CUpti_ActivityKind kind;
    TraceLevel from;
    bool needed; // without it there is nothing worth recording
    std::string_view name;
};

// CONCURRENT_KERNEL, never KERNEL, which runs kernels one after the other.
inline constexpr std::array kRecordedKinds{
    RecordedKind{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, TraceLevel::Kernels, true, "marks of actions"},
    RecordedKind{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, TraceLevel::Kernels, true, "kernels"},
    RecordedKind{CUPTI_ACTIVITY_KIND_MEMCPY, TraceLevel::Kernels, true, "copies"},
    RecordedKind{CUPTI_ACTIVITY_KIND_MEMCPY2, TraceLevel::Kernels, false, "copies between devices"},
    RecordedKind{CUPTI_ACTIVITY_KIND_MEMSET, TraceLevel::Kernels, false, "memsets"},
    RecordedKind{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, TraceLevel::Kernels, false, "waits"},
    RecordedKind{CUPTI_ACTIVITY_KIND_OVERHEAD, TraceLevel::Kernels, false, "overhead"},
    RecordedKind{CUPTI_ACTIVITY_KIND_RUNTIME, TraceLevel::Api, false, "calls of the CUDA runtime"},
    RecordedKind{CUPTI_ACTIVITY_KIND_DRIVER, TraceLevel::Api, false, "calls of the CUDA driver"},
    RecordedKind{CUPTI_ACTIVITY_KIND_MEMORY2, TraceLevel::Api, false, "allocations"},
};

// The calls that launch. CUPTI says that a mark comes with the record of a call, so that without them a kernel might have none;
// all calls would cost more than the kernels. LibTorch 2.11 launches by __cudaLaunchKernel (505), which CUDA 13 made of
// cudaLaunchKernel (211), and by cudaLaunchKernelExC; cuBLAS, Triton and NCCL by the driver's.
inline constexpr std::array kLaunchingRuntimeCalls{
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
};
inline constexpr std::array kLaunchingDriverCalls{
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
};

} // namespace stagecraft::runtime
