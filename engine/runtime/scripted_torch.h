// SPDX-License-Identifier: Apache-2.0
//
// A layer from a file of torch.jit.save (engine::TorchScript). Its parameters begin with the values of the file, as copies; those that
// take no part in its output stay as they are. In bfloat16 all of its floats become that, and with them what it computes. It runs in the mode, training or evaluation, that it was saved in. Throws
// std::runtime_error with the file's name, what is wrong and what to do. Private to the runtime.
//
//   ScriptedModule module(layer);            // reads the file, tries it on two rows
//   Tensor y = module.forward(x);            // as Python would compute it, autograd's graph behind it
//   Tensor y = module.forward(x, ScriptDraw{seed});   // with LibTorch's generator set to that, where it draws at random (dropout)
#pragma once

#include "engine/model/layers.h"
#include "engine/runtime/precision_torch.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

struct ScriptDraw {
    std::uint64_t seed = 0;
    bool whole = true; // the rows are all of a micro-batch
};

class ScriptedModule {
public:
    explicit ScriptedModule(const engine::TorchScript& layer, TensorKind kind = {});
    ~ScriptedModule();
    ScriptedModule(const ScriptedModule&) = delete;
    ScriptedModule& operator=(const ScriptedModule&) = delete;

    [[nodiscard]] const std::vector<at::Tensor>& parameters() const;
    // As the file has them: "up.weight".
    [[nodiscard]] const std::vector<std::string>& names() const;
    // Other ones of the same shapes, in the same order.
    void setParameters(const std::vector<at::Tensor>& parameters);
    // One that draws at random does so from the generator that all of the process share, so such ones compute one after the other.
    [[nodiscard]] at::Tensor forward(const at::Tensor& x, const std::optional<ScriptDraw>& draw = std::nullopt);

private:
    struct Loaded; // LibTorch's module
    std::unique_ptr<Loaded> loaded_;
};

} // namespace stagecraft::runtime
