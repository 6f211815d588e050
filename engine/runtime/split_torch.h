// SPDX-License-Identifier: Apache-2.0
//
// A backward in two parts, I and W, for any graph of autograd's (Qi et al. 2023, arXiv 2401.10241 sec. 2), as torch.distributed.pipelining
// has it in _backward.py. Layers whose functions know how to wait (deferred_torch.h) need none of this.
//
//        root
//         |            I goes down the nodes that lead to an input, and notes the gradient that comes into each that has a weight.
//        mm1 --- w1    Then it cuts those nodes off from what is below them. So W, which goes from each of them with that gradient, finds
//         |            weights and nothing else: no input gradient is made twice, and a weight that two nodes use (pytorch#180952), or
//       relu           that both use through a third node, gets each part once. Nodes without weights, as the relu here, are gone
//         |            after I with what they had saved.
//        mm2 --- w2
//         |
//       input
//
// Contributions to one weight come in the order of the plain backward, which is that of the engine: the newest node first. So the
// sums are its own to the bit. One thread at a time. Private to the runtime.
//
//   SplitBackward later;
//   later.inputGradients({.roots = {edge}, .gradients = {dy}, .inputs = {x}});   // I: into x.grad
//   later.weightGradients();                                                     // W: into the parameters' .grad
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <vector>

namespace stagecraft::runtime {

class SplitBackward {
public:
    struct Task {
        std::vector<torch::autograd::Edge> roots;
        std::vector<at::Tensor> gradients; // of the roots
        std::vector<at::Tensor> inputs;           // leaves whose gradients I makes; all other leaves are weights
        torch::autograd::Edge end = {};           // where no leaf is an input: I goes down to here, and W has what lies below
    };
    void inputGradients(Task task);
    // Lets go of all that was kept.
    void weightGradients();

    template <class Visit>
    void forEachKept(Visit&& visit) const
    {
        for (const at::Tensor& gradient : gradients_) visit(gradient);
    }

private:
    // Where W begins, and with what.
    std::vector<torch::autograd::Edge> roots_;
    std::vector<at::Tensor> gradients_;
};

} // namespace stagecraft::runtime
