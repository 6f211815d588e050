// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/cupti_error.h"

#include <algorithm>
#include <array>
#include <cupti_result.h>
#include <fmt/format.h>

namespace stagecraft::runtime {

namespace {

struct Reason {
    CUptiResult code;
    std::string_view name;
    std::string_view why;
    std::string_view remedy;
};

constexpr std::string_view kGoOn = "Record at level events, which needs no CUPTI";
constexpr std::string_view kReport = "This is a fault of the program: report it with this line";

#define STAGECRAFT_CUPTI_CODE(name) CUPTI_ERROR_##name, "CUPTI_ERROR_" #name
constexpr std::array kReasons{
    Reason{STAGECRAFT_CUPTI_CODE(INVALID_PARAMETER), "CUPTI does not know a value it was given",
           "Take the CUPTI that was installed with LibTorch: another release may lie before it in LD_LIBRARY_PATH"},
    Reason{STAGECRAFT_CUPTI_CODE(INVALID_DEVICE), "the device is not one of CUDA's",
           "Check CUDA_VISIBLE_DEVICES against what nvidia-smi lists"},
    Reason{STAGECRAFT_CUPTI_CODE(INVALID_CONTEXT), "the device's context is gone",
           "An earlier CUDA error has ended it: start the run again"},
    Reason{STAGECRAFT_CUPTI_CODE(INVALID_OPERATION), "CUPTI is in a state in which it cannot do that",
           "Start the run again, in a new process"},
    Reason{STAGECRAFT_CUPTI_CODE(OUT_OF_MEMORY), "there is not enough memory for CUPTI's own buffers, about 10 MB of each device",
           "Make the run smaller, or record at level events"},
    Reason{STAGECRAFT_CUPTI_CODE(HARDWARE), "the device's monitor reported an error", "Look at nvidia-smi and the system's log (Xid)"},
    Reason{STAGECRAFT_CUPTI_CODE(API_NOT_IMPLEMENTED), "this release of CUPTI cannot do that",
           "Take the CUPTI that was installed with LibTorch"},
    Reason{STAGECRAFT_CUPTI_CODE(MAX_LIMIT_REACHED), "CUPTI has no more room for it", kReport},
    Reason{STAGECRAFT_CUPTI_CODE(NOT_READY), "CUPTI is not ready for it yet", "Start the run again"},
    Reason{STAGECRAFT_CUPTI_CODE(NOT_COMPATIBLE), "it does not go together with what CUPTI records already",
           "Another tool in this process uses CUPTI: leave it out"},
    Reason{STAGECRAFT_CUPTI_CODE(NOT_INITIALIZED), "CUPTI cannot reach the NVIDIA driver",
           "Check with nvidia-smi that a driver of release 580 or newer is loaded"},
    Reason{STAGECRAFT_CUPTI_CODE(QUEUE_EMPTY), "no id of an action stood on the thread", kReport},
    Reason{STAGECRAFT_CUPTI_CODE(INVALID_KIND), "this release of CUPTI does not know that kind of record",
           "Take the CUPTI that was installed with LibTorch"},
    Reason{STAGECRAFT_CUPTI_CODE(DISABLED), "CUPTI is switched off because another profiler is in use",
           "Close Nsight Systems, Nsight Compute, cuda-gdb or DCGM, and start the run again"},
    Reason{STAGECRAFT_CUPTI_CODE(HARDWARE_BUSY), "another program uses the device's monitor",
           "Close the other profiler, and start the run again"},
    Reason{STAGECRAFT_CUPTI_CODE(NOT_SUPPORTED), "this device or system does not support it", kGoOn},
    Reason{STAGECRAFT_CUPTI_CODE(VIRTUALIZED_DEVICE_NOT_SUPPORTED), "the GPU is a virtual one, where CUPTI is not supported",
           kGoOn},
    Reason{STAGECRAFT_CUPTI_CODE(CUDA_COMPILER_NOT_COMPATIBLE), "the kernels were compiled by a release of CUDA that is too old",
           "Take LibTorch as it was installed with the program"},
    Reason{STAGECRAFT_CUPTI_CODE(INSUFFICIENT_PRIVILEGES), "the user may not profile this GPU",
           "Recording of kernels needs no special rights since CUDA 10.2; where the system refuses it all the same, its "
           "administrator allows it by the driver's option NVreg_RestrictProfilingToAdminUsers=0"},
    Reason{STAGECRAFT_CUPTI_CODE(OLD_PROFILER_API_INITIALIZED), "a part of this process uses CUPTI's old interface",
           "Another tool in this process uses CUPTI: leave it out"},
    Reason{STAGECRAFT_CUPTI_CODE(LEGACY_PROFILER_NOT_SUPPORTED), "that kind of record was removed from CUPTI",
           "Take the CUPTI that was installed with LibTorch"},
    Reason{STAGECRAFT_CUPTI_CODE(MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED), "another profiler is attached to this process",
           "Only one may be. Start without Nsight Systems, Nsight Compute, cuda-gdb and compute-sanitizer, without "
           "CUDA_INJECTION64_PATH and KINETO_USE_DAEMON in the environment"},
    Reason{STAGECRAFT_CUPTI_CODE(VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
           "the GPU is a virtual one, whose hypervisor does not allow it",
           "Whoever runs the host allows it for this virtual machine; else record at level events"},
    Reason{STAGECRAFT_CUPTI_CODE(CONFIDENTIAL_COMPUTING_NOT_SUPPORTED), "the GPU runs in confidential mode, which forbids it", kGoOn},
    Reason{STAGECRAFT_CUPTI_CODE(CMP_DEVICE_NOT_SUPPORTED), "CUPTI does not support mining processors", kGoOn},
    Reason{STAGECRAFT_CUPTI_CODE(MIG_DEVICE_NOT_SUPPORTED), "the GPU is one part of several (MIG), which CUPTI does not support here", kGoOn},
    Reason{STAGECRAFT_CUPTI_CODE(SLI_DEVICE_NOT_SUPPORTED), "CUPTI does not support GPUs that are joined by SLI", kGoOn},
    Reason{STAGECRAFT_CUPTI_CODE(WSL_DEVICE_NOT_SUPPORTED), "CUPTI does not support it under WSL",
           "Record at level events, or run on Linux itself"},
    Reason{STAGECRAFT_CUPTI_CODE(UNKNOWN), "CUPTI gives no reason; most often there is no NVIDIA driver, or it is too old",
           "Check with nvidia-smi that a driver of release 580 or newer is loaded"},
};
#undef STAGECRAFT_CUPTI_CODE

} // namespace

traces::Error cuptiError(std::string_view what, int code, std::string_view detail)
{
    const auto* known = std::find_if(kReasons.begin(), kReasons.end(), [code](const Reason& each) { return each.code == code; });
    const std::string more = detail.empty() ? std::string() : fmt::format(" ({})", detail);
    if (known == kReasons.end()) {
        return {fmt::format("{} is not possible: CUPTI refuses it{}. {} (CUPTI error {})", what, more, kGoOn, code)};
    }
    return {fmt::format("{} is not possible: {}{}. {} (CUPTI error {}, {})", what, known->why, more, known->remedy, code, known->name)};
}

} // namespace stagecraft::runtime
