// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gradient_queue_torch.h"

#include "engine/runtime/precision_torch.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace stagecraft::runtime {

namespace {
thread_local GradientQueue* innermost = nullptr;
} // namespace

GradientQueue::Scope::Scope(GradientQueue& queue) : outer_(std::exchange(innermost, &queue)) {}
GradientQueue::Scope::~Scope() { innermost = outer_; }

GradientQueue* GradientQueue::current() { return innermost; }

void GradientQueue::add(std::vector<at::Tensor> kept, std::function<void(const std::vector<at::Tensor>&)> makeAndAdd)
{
    waiting_.push_back({std::move(kept), std::move(makeAndAdd)});
}

void GradientQueue::run()
{
    const at::NoGradGuard noGrad;
    for (Waiting& each : std::exchange(waiting_, {})) {
        each.makeAndAdd(each.kept);
        each = {};
    }
}

void addGradient(at::Tensor& parameter, const at::Tensor& gradient)
{
    at::Tensor& sum = parameter.mutable_grad();
    if (sum.defined()) sum.add_(gradient);
    else sum = gradient.to(gradientType(parameter));
}

} // namespace stagecraft::runtime
