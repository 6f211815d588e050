// SPDX-License-Identifier: Apache-2.0
//
// What of a stage belongs to one of several replicas that divide it (ZeRO, arXiv 1910.02054 sec. 5): of every parameter the values that
// the replica updates, flat; and of their gradients and of the weights themselves, as far as these are divided too, what it keeps while
// the memory of the rest is free. The parameters stay the same tensors whose memory goes and comes back, so that a graph which holds on
// to one finds its values again. One thread at a time. Private to the runtime.
//
//   OwnParts parts(parameters, {.replica = 1, .replicas = 2, .ledger = ledger});
//   parts.giveUpWeights();            // RESHARD: the own values are left
//   parts.takeRoomForWeights();       // UNSHARD: room for all, with the own ones in it; the others' are to be gathered
//   parts.keepOwnGradients();         // once they are summed
//   optimizer.setParameters(parts.valuesWithGradients());
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/replica_part.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

class OwnParts {
public:
    struct Spec {
        int replica = 0;
        int replicas = 1;
        MemoryLedger* ledger = nullptr; // of the rank, not owned
        std::optional<std::size_t> secondUse = {}; // of the parameters: lies in the memory of another one, and is not updated
        std::function<void()> letOtherWait = {}; // as StageModule::Spec has it
    };
    OwnParts(std::vector<at::Tensor> parameters, const Spec& spec);

    // Of a parameter, or of what the optimizer keeps of it: a view.
    [[nodiscard]] at::Tensor ownOf(const at::Tensor& whole) const;

    // Wherever they lie; one for each parameter that is updated, which may be empty.
    [[nodiscard]] std::vector<at::Tensor> values() const;
    [[nodiscard]] std::vector<at::Tensor> valuesWithGradients() const;

    // Between the two calls a parameter has no memory. Each does nothing where it was called last. May throw what an allocation throws.
    void giveUpWeights();
    void takeRoomForWeights();

    // Out of the parameters' .grad, which have none from then on.
    void keepOwnGradients();
    [[nodiscard]] bool keepsOwnGradients() const { return !gradients_.empty(); }
    // From then on, one for each parameter; without any, they are looked for in .grad again.
    [[nodiscard]] const std::vector<at::Tensor>& gradients() const { return gradients_; }
    void setGradients(std::vector<at::Tensor> gradients) { gradients_ = std::move(gradients); }
    [[nodiscard]] at::Tensor gradient(std::size_t parameter) const; // wherever it lies

private:
    [[nodiscard]] PartRange rangeOf(const at::Tensor& whole) const;

    std::vector<at::Tensor> parameters_;
    Spec spec_;
    std::vector<at::Tensor> weights_;   // by parameter, where the rest is given up; else empty
    std::vector<at::Tensor> gradients_; // the same
};

} // namespace stagecraft::runtime
