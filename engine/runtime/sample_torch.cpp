// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/sample_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/layer_torch.h"
#include "engine/runtime/whole_state_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

namespace stagecraft::runtime {

using at::Tensor;

namespace {

constexpr std::size_t kBegin = 16;    // tokens of the text
constexpr std::size_t kLength = 240;  // of the sample, with them
constexpr double kTemperature = 0.7;  // likely tokens become likelier: a short training is still unsure of most
constexpr std::uint64_t kPlace = (std::uint64_t{1} << 40) + 2; // of its stream, apart from those of weights and data

} // namespace

std::string sampleText(const Replicas& replicas, const engine::Plan& plan, const engine::TextTokens& text)
{
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(mixedSeed(plan.run.seed, kPlace));
    const auto known = static_cast<std::int64_t>(text.vocabulary.size());
    const auto window = static_cast<std::size_t>(engine::inputShape(plan.model, 1).back());
    Pipeline& pipeline = *replicas.front();
    std::vector<Place> stages;
    std::vector<std::vector<Tensor>> weights;
    for (int s = 0; s < pipeline.schedule().stages(); ++s) {
        stages.push_back({pipeline.schedule().flows().front(), traces::Stage{s}});
        weights.push_back(wholeWeights(replicas, stages.back()));
    }
    std::vector<std::int64_t> sample(text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(std::min({kBegin, window, text.tokens.size()})));
    while (sample.size() < kLength) {
        const std::size_t seen = std::min(window, sample.size());
        Tensor x = at::tensor(at::IntArrayRef(sample).slice(sample.size() - seen), at::kLong).unsqueeze(0);
        for (std::size_t s = 0; s < stages.size(); ++s) x = pipeline.stage(stages[s]).evaluate(x, weights[s]);
        x = x.cpu().to(at::kFloat);
        const Tensor next = x.select(0, 0).select(0, -1).narrow(0, 0, known) / kTemperature;
        if (!next.isfinite().all().item<bool>()) break; // the training diverged: there is nothing to draw from
        sample.push_back(at::multinomial(next.softmax(0), 1, /*replacement=*/false, generator).item<std::int64_t>());
    }
    return text.text(sample);
}

} // namespace stagecraft::runtime
