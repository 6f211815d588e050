// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/work_scope.h"

#include "engine/probe/cupti/cupti_api_cupti.h"

namespace stagecraft::runtime {

namespace {

// Each kind of external id would cost a record per launch of its own: one is enough.
constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

} // namespace

void WorkMarks::begin(std::uint32_t run) { run_.store(static_cast<std::int32_t>(run % kRuns), std::memory_order_relaxed); }

void WorkMarks::end() { run_.store(-1, std::memory_order_relaxed); }

void WorkScope::mark(const WorkMarks& marks, traces::Step step, const traces::Work& work, int replica)
{
    const std::int32_t run = marks.run_.load(std::memory_order_relaxed);
    if (run < 0) return;
    const std::optional<WorkId> id = packWork({.run = static_cast<std::uint32_t>(run), .step = step, .work = work, .replica = replica});
    if (id && marks.library_->api().pushExternalCorrelation(kOurs, *id) == CUPTI_SUCCESS) {
        marked_ = &marks;
    } else {
        marks.failed_.fetch_add(1, std::memory_order_relaxed);
    }
}

void WorkScope::unmark() { marked_->library_->api().popExternalCorrelation(kOurs, nullptr); }

} // namespace stagecraft::runtime
