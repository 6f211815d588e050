// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/old_versions.h"

namespace stagecraft::engine {

OldVersions::OldVersions(const Schedule& schedule, const std::vector<int>& entry) : rule_(schedule.updates), entry_(&entry)
{
    if (rule_ != UpdateRule::VerticalSync) return;
    updates_ = (schedule.microbatches - 1) / schedule.microbatchesPerUpdate + 1;
    beginStep();
}

void OldVersions::beginStep()
{
    newest_ = 0;
    left_.assign(static_cast<std::size_t>(updates_) + 1, 0);
    for (const int version : *entry_) ++left_[static_cast<std::size_t>(version)];
}

int OldVersions::atBegin(const traces::Work& work)
{
    if (rule_ == UpdateRule::Stashed) return work.kind == ActionKind::Forward && ++inFlight_ > 1 ? 1 : 0;
    if (rule_ != UpdateRule::VerticalSync || work.kind != ActionKind::Optimizer) return 0;
    const bool wanted = left_[static_cast<std::size_t>(newest_)] > 0;
    if (++newest_ == updates_) beginStep();
    return wanted ? 1 : 0;
}

int OldVersions::atEnd(const traces::Work& work)
{
    if (work.kind != ActionKind::Backward && work.kind != ActionKind::WeightGrad) return 0;
    if (rule_ == UpdateRule::Stashed) return --inFlight_ > 0 ? -1 : 0;
    if (rule_ != UpdateRule::VerticalSync) return 0;
    return --left(work) == 0 && (*entry_)[index(work.microbatch)] < newest_ ? -1 : 0;
}

} // namespace stagecraft::engine
