// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/split_torch.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace stagecraft::runtime {

namespace {

using at::Tensor;
using torch::autograd::AccumulateGrad;
using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::Node;
using torch::autograd::variable_list;

// What can be reached from a node, itself among it.
struct Reach {
    bool input = false;
    bool weight = false;
};

class Graph {
public:
    Graph(const edge_list& roots, const std::vector<Tensor>& inputs, Node* end) : inputs_(inputs), end_(end)
    {
        for (const Edge& root : roots)
            if (root.is_valid()) visit(root.function);
    }

    // All, each behind those below it.
    [[nodiscard]] const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }
    [[nodiscard]] Reach reach(Node* node) const { return reach_.at(node); }
    // On the way to an input, or the input itself.
    [[nodiscard]] bool carries(const Edge& edge) const { return edge.is_valid() && reach(edge.function.get()).input; }
    [[nodiscard]] bool isWeightAlone(const Edge& edge) const { return edge.is_valid() && !carries(edge) && reach(edge.function.get()).weight; }
    [[nodiscard]] bool isEnd(Node* node) const { return node == end_; }
    [[nodiscard]] AccumulateGrad* leafOf(Node* node) const { return dynamic_cast<AccumulateGrad*>(node); }

private:
    // Depth first, without recursion: a graph may be deeper than the stack.
    void visit(const std::shared_ptr<Node>& root)
    {
        struct Place {
            std::shared_ptr<Node> node;
            std::size_t next = 0;
        };
        std::vector<Place> path;
        const auto enter = [&](const std::shared_ptr<Node>& node) {
            if (reach_.emplace(node.get(), Reach{}).second) path.push_back({node});
        };
        enter(root);
        while (!path.empty()) {
            Place& place = path.back();
            if (place.next < place.node->next_edges().size()) {
                if (const Edge& edge = std::as_const(*place.node).next_edges()[place.next++]; edge.is_valid()) enter(edge.function);
                continue;
            }
            const std::shared_ptr<Node> done = std::move(place.node);
            path.pop_back();
            reach_[done.get()] = reachOf(*done);
            nodes_.push_back(done);
        }
    }

    [[nodiscard]] Reach reachOf(Node& node) const
    {
        if (const AccumulateGrad* leaf = leafOf(&node)) {
            const bool input = std::any_of(inputs_.begin(), inputs_.end(), [&](const Tensor& each) { return each.is_same(leaf->variable); });
            return {.input = input, .weight = !input};
        }
        Reach reach;
        for (const Edge& edge : std::as_const(node).next_edges()) {
            if (!edge.is_valid()) continue;
            const Reach below = reach_.at(edge.function.get());
            reach.input = reach.input || below.input;
            reach.weight = reach.weight || below.weight;
        }
        if (isEnd(&node)) reach.input = true;
        return reach;
    }

    const std::vector<Tensor>& inputs_;
    Node* end_;
    std::unordered_map<Node*, Reach> reach_;
    std::vector<std::shared_ptr<Node>> nodes_;
};

// As AccumulateGrad, but into a sum of its own: W keeps some of these gradients, which nobody may change.
void addToLeaf(Tensor& leaf, const Tensor& gradient)
{
    Tensor& sum = leaf.mutable_grad();
    sum = sum.defined() ? sum + gradient : gradient;
}

} // namespace

void SplitBackward::inputGradients(Task task)
{
    const Graph graph(task.roots, task.inputs, task.end.function.get());

    // What I brings: to the inputs, and to where W begins.
    edge_list wanted;
    std::vector<Tensor> leaves;
    for (const std::shared_ptr<Node>& node : graph.nodes()) {
        if (!graph.reach(node.get()).input) continue;
        if (AccumulateGrad* leaf = graph.leafOf(node.get())) {
            wanted.emplace_back(node, 0);
            leaves.push_back(leaf->variable);
        }
    }
    for (const std::shared_ptr<Node>& node : graph.nodes()) {
        if (!graph.reach(node.get()).input || graph.leafOf(node.get())) continue;
        const edge_list& below = std::as_const(*node).next_edges();
        const bool begins = graph.isEnd(node.get()) || std::any_of(below.begin(), below.end(), [&](const Edge& edge) { return graph.isWeightAlone(edge); });
        if (!begins) continue;
        for (std::uint32_t i = 0; i < node->num_inputs(); ++i) wanted.emplace_back(node, i);
    }
    // A root that leads to no input has its gradient already.
    for (std::size_t i = 0; i < task.roots.size(); ++i) {
        if (!graph.carries(task.roots[i]) && graph.isWeightAlone(task.roots[i])) {
            roots_.push_back(task.roots[i]);
            gradients_.push_back(task.gradients[i]);
        }
    }
    if (!wanted.empty()) {
        const variable_list brought = Engine::get_default_engine().execute(task.roots, task.gradients, /*keep_graph=*/true, /*create_graph=*/false,
                                                                           /*accumulate_grad=*/false, wanted);
        const at::NoGradGuard noGrad;
        for (std::size_t i = 0; i < brought.size(); ++i) {
            if (!brought[i].defined()) continue;
            if (i < leaves.size()) {
                addToLeaf(leaves[i], brought[i]);
            } else {
                roots_.push_back(wanted[i]);
                gradients_.push_back(brought[i]);
            }
        }
    }
    for (const std::shared_ptr<Node>& node : graph.nodes()) {
        if (!graph.reach(node.get()).input || graph.isEnd(node.get())) continue;
        for (Edge& edge : node->next_edges())
            if (graph.carries(edge)) edge = Edge();
    }
}

void SplitBackward::weightGradients()
{
    const edge_list roots = std::exchange(roots_, {});
    const variable_list gradients = std::exchange(gradients_, {});
    if (roots.empty()) return;
    Engine::get_default_engine().execute(roots, gradients, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/true);
}

} // namespace stagecraft::runtime
