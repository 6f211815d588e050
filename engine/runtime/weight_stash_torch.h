// SPDX-License-Identifier: Apache-2.0
//
// The versions of a stage's weights where they change while micro-batches are in flight (PipeDream, arXiv 1806.03377; PipeDream-2BW,
// arXiv 2006.09503). Which unit goes by which version is the schedule's (weight_versions.h). A version is there as long as somebody
// holds it or a forward is still to take it; an update of one that nobody else needs is made in place. One thread at a time. Private
// to the runtime.
//
//   std::shared_ptr<WeightVersion> weights = stash.take(unit);   // F: and the unit holds it until its backward is done
//   stash.collect(*weights);                                     // B or W: its gradient waits for the update
//   stash.update(optimizer, rate);                               // OPTIMIZER: the next version
#pragma once

#include "engine/runtime/optimizer_torch.h"
#include "engine/runtime/rank_work.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace stagecraft::runtime {

struct WeightVersion {
    int number = 0; // updates that made it, in this step
    std::vector<at::Tensor> weights;
};

class WeightStash {
public:
    WeightStash(const StageDuties& duties, std::vector<at::Tensor> first);

    // The version that the unit's forward goes by.
    std::shared_ptr<WeightVersion> take(int unit);
    // Moves the gradients out of a version's weights to those that the next update takes.
    void collect(WeightVersion& version);
    // After the last one of a step the numbers begin anew. New weights are booked as such, those that become older ones as Versions,
    // by the caller's AllocationScope.
    void update(StageOptimizer& optimizer, double rate);

    [[nodiscard]] const std::vector<at::Tensor>& newest() const { return newest_->weights; }
    [[nodiscard]] const std::vector<at::Tensor>& gradients() const { return gradients_; }

private:
    void beginStep();
    void letGo();

    std::vector<int> version_; // by unit
    int updates_;              // of a step
    std::shared_ptr<WeightVersion> newest_;
    std::vector<std::shared_ptr<WeightVersion>> older_; // that a forward is still to take
    std::vector<int> toCome_;                           // by version: forwards
    std::vector<at::Tensor> gradients_;
};

} // namespace stagecraft::runtime
