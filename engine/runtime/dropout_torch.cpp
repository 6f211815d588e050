// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/dropout_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/layer_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <vector>

namespace stagecraft::runtime {

namespace {

// Far above the places of weights and data (layer_torch, batch_torch), so that none shares a stream with them.
constexpr std::uint64_t kFirstPlace = std::uint64_t{1} << 41;

} // namespace

std::uint64_t drawSeed(const DataPlace& at, std::uint64_t layer)
{
    const std::uint64_t ofStep = mixedSeed(mixedSeed(at.seed, kFirstPlace + layer), static_cast<std::uint64_t>(at.step));
    return mixedSeed(ofStep, static_cast<std::uint64_t>(at.microbatch));
}

// What is drawn is for the whole micro-batch, so that a part of it gets the same as if it were there whole.
at::Tensor dropOut(const at::Tensor& x, double probability, std::uint64_t layer, const DataPlace& at)
{
    if (!at.training || probability == 0) return x;
    auto generator = at::make_generator<at::CPUGeneratorImpl>(drawSeed(at, layer));
    std::vector<std::int64_t> whole = x.sizes().vec();
    if (at.rows > 0) whole[0] = at.rows;
    if (at.positions > 0) whole[1] = at.positions;
    at::Tensor kept;
    {
        const at::NoGradGuard noGrad;
        const bool stays = x.is_cpu(); // drawn on the CPU, wherever it is used
        const AllocationScope scope(stays ? currentAllocationTag() : AllocationTag{});
        kept = at::empty(whole, at::kBool).bernoulli_(1 - probability, generator);
        if (at.rows > 0) kept = kept.narrow(0, at.firstRow, x.size(0));
        if (at.positions > 0) kept = kept.narrow(1, at.firstPosition, x.size(1));
        if (stays && kept.sizes() != at::IntArrayRef(whole)) kept = kept.clone(); // and not all of it for the backward
    }
    kept = kept.to(x.device());
    return x * kept * (1 / (1 - probability));
}

} // namespace stagecraft::runtime
