// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/tensor_mail_torch.h"

#include "engine/probe/last_use.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace stagecraft::runtime {

namespace {

struct Form {
    std::int8_t type = -1; // of a tensor that is not defined
    std::uint8_t requiresGrad = 0;
    std::uint16_t dimensions = 0;
    // then sizes and strides, int64 each
};

void append(std::string& text, const void* bytes, std::size_t count) { text.append(static_cast<const char*>(bytes), count); }

std::vector<std::int64_t> takeNumbers(std::string_view& text, std::size_t count)
{
    std::vector<std::int64_t> numbers(count);
    const std::span<std::byte> into = std::as_writable_bytes(std::span(numbers)); // of a scalar none
    std::ranges::copy(std::as_bytes(std::span(text)).first(into.size()), into.begin());
    text.remove_prefix(count * sizeof(std::int64_t));
    return numbers;
}

void addForm(std::string& text, const at::Tensor& tensor, bool leaf)
{
    Form form; // of one that is not defined
    if (tensor.defined())
        form = {static_cast<std::int8_t>(tensor.scalar_type()), static_cast<std::uint8_t>(leaf), static_cast<std::uint16_t>(tensor.dim())};
    append(text, &form, sizeof form);
    if (!tensor.defined()) return;
    append(text, tensor.sizes().data(), tensor.sizes().size() * sizeof(std::int64_t));
    append(text, tensor.strides().data(), tensor.strides().size() * sizeof(std::int64_t));
}

// Until the office has sent them.
struct Kept {
    std::vector<at::Tensor> tensors;
    Kept() = default;
    ~Kept()
    {
        for (const at::Tensor& each : tensors) letGoOf(each.storage().data());
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
};

} // namespace

std::string formOf(const std::vector<at::Tensor>& tensors)
{
    std::string text;
    for (const at::Tensor& tensor : tensors) addForm(text, tensor, tensor.defined() && tensor.requires_grad());
    return text;
}

TensorMail packTensors(const std::vector<at::Tensor>& tensors)
{
    const at::NoGradGuard noGrad;
    TensorMail mail;
    const auto kept = std::make_shared<Kept>();
    for (const at::Tensor& tensor : tensors) {
        // Gaps or repetitions in memory do not travel.
        const at::Tensor dense = !tensor.defined() || tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
        addForm(mail.text, dense, tensor.defined() && tensor.requires_grad());
        if (!tensor.defined()) continue;
        const at::Tensor sent = dense.detach().cpu(); // the same where it is there
        mail.bodies.emplace_back(static_cast<const std::byte*>(sent.data_ptr()), sent.nbytes());
        kept->tensors.push_back(sent);
    }
    mail.keep = kept;
    return mail;
}

std::vector<at::Tensor> tensorsLike(std::string_view text, c10::Device device)
{
    std::vector<at::Tensor> tensors;
    while (!text.empty()) {
        Form form;
        std::memcpy(&form, text.data(), sizeof form);
        text.remove_prefix(sizeof form);
        if (form.type < 0) {
            tensors.emplace_back();
            continue;
        }
        const std::vector<std::int64_t> sizes = takeNumbers(text, form.dimensions);
        const std::vector<std::int64_t> strides = takeNumbers(text, form.dimensions);
        tensors.push_back(at::empty_strided(sizes, strides, at::TensorOptions(device).dtype(static_cast<at::ScalarType>(form.type))));
        if (form.requiresGrad != 0) tensors.back().requires_grad_();
    }
    return tensors;
}

std::vector<std::span<std::byte>> roomOf(const std::vector<at::Tensor>& tensors)
{
    std::vector<std::span<std::byte>> room;
    for (const at::Tensor& tensor : tensors)
        if (tensor.defined()) room.emplace_back(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
    return room;
}

} // namespace stagecraft::runtime
