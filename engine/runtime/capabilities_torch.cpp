// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/capabilities.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <thread>

namespace stagecraft::runtime {

RuntimeCapabilities runtimeCapabilities()
{
    RuntimeCapabilities found;
    found.torchVersion = TORCH_VERSION;
    found.vectorUnits = at::get_cpu_capability();
    found.hardwareThreads = static_cast<int>(std::thread::hardware_concurrency());
    found.intraOpThreads = at::get_num_threads();
    if (at::hasMKL()) found.mkl = at::get_mkl_version();
    if (at::Context::hasMKLDNN()) found.oneDnn = at::get_mkldnn_version();
    if (at::hasOpenMP()) found.openMp = at::get_openmp_version();
    return found;
}

} // namespace stagecraft::runtime
