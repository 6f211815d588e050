// SPDX-License-Identifier: Apache-2.0
//
// The records as they are read, by kind, with the size that CUPTI 13.0 gives them on 64 bits. A header of another release that
// lays them out otherwise does not compile; tests compare the table with how far the library itself steps.
//
//   for (const RecordSize& each : kRecordSizes) expectStep(each.kind, each.bytes);
#pragma once

#include <array>
#include <cstddef>
#include <cupti.h>

namespace stagecraft::runtime {

struct RecordSize {
    CUpti_ActivityKind kind;
    std::size_t bytes;
};

inline constexpr std::array kRecordSizes{
    RecordSize{CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
    RecordSize{CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
    RecordSize{CUPTI_ACTIVITY_KIND_KERNEL, sizeof(CUpti_ActivityKernel10)},
    RecordSize{CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
    RecordSize{CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
    RecordSize{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10)},
    RecordSize{CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3)},
    RecordSize{CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4)},
    RecordSize{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2)},
    RecordSize{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)},
    RecordSize{CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API, sizeof(CUpti_ActivityAPI)},
    RecordSize{CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4)},
};

static_assert(sizeof(CUpti_ActivityKernel10) == 216 && alignof(CUpti_ActivityKernel10) == 8);
static_assert(sizeof(CUpti_ActivityMemcpy6) == 96);
static_assert(sizeof(CUpti_ActivityMemcpyPtoP4) == 96);
static_assert(sizeof(CUpti_ActivityMemset4) == 88);
static_assert(sizeof(CUpti_ActivityMemory4) == 128);
static_assert(sizeof(CUpti_ActivityExternalCorrelation) == 24);
static_assert(sizeof(CUpti_ActivityAPI) == 40);
static_assert(sizeof(CUpti_ActivitySynchronization2) == 56);
static_assert(sizeof(CUpti_ActivityOverhead3) == 56);

} // namespace stagecraft::runtime
