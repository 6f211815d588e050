// SPDX-License-Identifier: Apache-2.0
//
// How many versions of its weights a stage keeps beside the newest, as its actions go by one after the other, step after step
// (weight_versions.h says which version a micro-batch goes by).
//   Stashed         one for each micro-batch in flight but the first, from its forward to the end of its backward (PipeDream, arXiv
//                   1806.03377 sec. 3.3)
//   VerticalSync    those older ones that a micro-batch goes by whose backward is still to end
//   DoubleBuffered  one, always
//
//   OldVersions old(schedule, entry);                      // entry = versionsAtEntry(schedule), which outlives it
//   for (const Work& work : worksOfStage) { peak = max(peak, held += old.atBegin(work)); held += old.atEnd(work); }
#pragma once

#include "engine/schedule/schedule.h"

#include <vector>

namespace stagecraft::engine {

class OldVersions {
public:
    // `entry`: versionsAtEntry() of the schedule (weight_versions.h), for VerticalSync; outlives this.
    OldVersions(const Schedule& schedule, const std::vector<int>& entry);

    [[nodiscard]] int first() const { return rule_ == UpdateRule::DoubleBuffered ? 1 : 0; } // before any action
    // By how many they change as an action of the stage begins, and as it ends. Each action is told to both, in order.
    int atBegin(const traces::Work& work);
    int atEnd(const traces::Work& work);

private:
    void beginStep();
    [[nodiscard]] int& left(const traces::Work& work) { return left_[static_cast<std::size_t>((*entry_)[index(work.microbatch)])]; }

    UpdateRule rule_;
    const std::vector<int>* entry_;
    int updates_ = 0;       // of a step
    int inFlight_ = 0;      // micro-batches
    int newest_ = 0;        // version
    std::vector<int> left_; // by version: micro-batches that go by it and whose backward has not ended
};

} // namespace stagecraft::engine
