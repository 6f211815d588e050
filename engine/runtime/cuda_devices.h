// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA GPUs. What of LibTorch is for them is in libraries of its own, which need a driver and 4 GB of NVIDIA's: the module
// stagecraft_cuda links them, lies beside the program and is opened at the first call. Where it cannot be, there are no GPUs, and
// whyNone() says what is missing and how to get it.
//
//   for (const GpuInfo& gpu : cudaDevices().gpus()) ...
#pragma once

#include "engine/runtime/device_source.h"

namespace stagecraft::runtime {

// Any thread. The first call takes up to a second where there are GPUs.
const DeviceSource& cudaDevices();
// Those that a session was given, or NVIDIA's.
inline const DeviceSource& devicesOr(const DeviceSource* given) { return given != nullptr ? *given : cudaDevices(); }

// What the module offers, by this name and with C's linkage.
inline constexpr const char* kCudaModule = "stagecraft_cuda.so";
inline constexpr const char* kCudaModuleEntry = "stagecraftCudaDevices";
using CudaModuleEntry = const DeviceSource* (*)();

} // namespace stagecraft::runtime
