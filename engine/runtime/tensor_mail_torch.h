// SPDX-License-Identifier: Apache-2.0
//
// Tensors as mail between processes: the text says what they look like, the bodies are their values as they lie in memory. A tensor
// arrives with the strides it had, so kernels go the same way through it, and give the same bits, as in one process. Of a tensor on a GPU
// its copy on the host travels: for the caller to wait before that it is made. Private to the runtime.
//
//   const TensorMail mail = packTensors({y});
//   office.send(rank, kind, prefix + mail.text, mail.bodies, mail.keep);
//   std::vector<at::Tensor> room = tensorsLike(text);            // in the caller's AllocationScope
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::runtime {

struct TensorMail {
    std::string text;
    std::vector<std::span<const std::byte>> bodies; // of those that are defined
    std::shared_ptr<const void> keep;               // what the bodies lie in
};
TensorMail packTensors(const std::vector<at::Tensor>& tensors);

// What they look like alone: the text of packTensors().
std::string formOf(const std::vector<at::Tensor>& tensors);

// Without values yet; undefined ones stay so.
std::vector<at::Tensor> tensorsLike(std::string_view text, c10::Device device = c10::DeviceType::CPU);
// Where their values go, in the order of the bodies.
std::vector<std::span<std::byte>> roomOf(const std::vector<at::Tensor>& tensors);

} // namespace stagecraft::runtime
