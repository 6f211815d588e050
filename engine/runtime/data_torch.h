// SPDX-License-Identifier: Apache-2.0
//
// The batch of each step, in views of one micro-batch each: from the seed, the same in every step; or out of files, another one in each.
// What a step gets follows from plan, data and step alone: pipeline and check take the same. Private to the runtime.
//
//   const BatchSource batches(plan, data);
//   stage.giveInputs(batches.inputs(Step{3}));
#pragma once

#include "engine/data/dataset.h"
#include "engine/plan/plan.h"
#include "engine/runtime/batch_torch.h"
#include "traces/base/ids.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace stagecraft::runtime {

class BatchSource {
public:
    // `data`: that of the plan, which fits its model; nothing where it is synthetic.
    BatchSource(const engine::Plan& plan, std::shared_ptr<const engine::Dataset> data) : plan_(plan), data_(std::move(data)) {}

    [[nodiscard]] bool changes() const { return data_ != nullptr; } // from step to step
    // Allocated where the caller's AllocationScope says.
    [[nodiscard]] std::vector<at::Tensor> inputs(traces::Step step, int replica = kAllReplicas) const;
    [[nodiscard]] std::vector<at::Tensor> targets(traces::Step step, int replica = kAllReplicas) const;

private:
    [[nodiscard]] std::vector<std::int64_t> rowsOf(traces::Step step, int replica) const;

    const engine::Plan& plan_;
    std::shared_ptr<const engine::Dataset> data_;
};

} // namespace stagecraft::runtime
