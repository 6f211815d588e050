// SPDX-License-Identifier: Apache-2.0
//
// CUDA, CUPTI, NCCL and GPUs, by the functions that their libraries export; the few declarations stand here, so that no
// header of theirs is needed.
#include "app/cli/findings.h"
#include "app/cli/live_engine.h"
#include "app/cli/shared_library.h"
#include "app/cli/sibling.h"
#include "engine/runtime/cuda_devices.h"
#include "traces/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>

namespace stagecraft::cli {

namespace {

constexpr const char* kNoGpuRuns = "runs on GPUs (device cuda); the device cpu is not affected";
// Of the driver's cuDeviceGetAttribute.
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

// The libraries of the NVIDIA wheels lie beside LibTorch: <site-packages>/nvidia/<folder>/lib.
std::string besideLibTorch(std::string_view folder, const std::string& library)
{
    // <site-packages>/torch/lib/libtorch_cpu.so
    const std::filesystem::path site = libTorchBuild().library.parent_path().parent_path().parent_path();
    const std::filesystem::path file = site / "nvidia" / folder / "lib" / library;
    std::error_code ignored;
    return std::filesystem::exists(file, ignored) ? file.string() : library;
}

Finding missing(Finding finding, std::string why, std::string disables)
{
    finding.detail = std::move(why);
    finding.disables = std::move(disables);
    return finding;
}

} // namespace

Finding findLibTorch()
{
    Finding finding{.key = "libtorch", .title = "LibTorch"};
    constexpr const char* kDisables = "run and worker; simulation is not affected";
    if (const LibTorchBuild build = libTorchBuild(); !build.version.empty()) {
        const SharedLibrary library(build.library.string());
        if (!library.opened()) return missing(std::move(finding), library.reason() + " (./run installs it)", kDisables);
        finding.found = true;
        finding.detail = build.abilities.empty() ? build.version : fmt::format("{} ({})", build.version, build.abilities);
        return finding;
    }
    return missing(std::move(finding), "this build has none (-DSTAGECRAFT_WITH_TORCH=OFF)", kDisables);
}

Finding findCuda()
{
    Finding finding{.key = "cuda", .title = "CUDA driver"};
    const SharedLibrary driver("libcuda.so.1");
    if (!driver.opened())
        return missing(std::move(finding), "libcuda.so.1 is not on this machine: no NVIDIA driver", kNoGpuRuns);
    int version = 0;
    const auto getVersion = driver.function<int(int*)>("cuDriverGetVersion");
    if (getVersion == nullptr || getVersion(&version) != 0) {
        return missing(std::move(finding), "libcuda.so.1 is there but does not answer; is the driver loaded?", kNoGpuRuns);
    }
    finding.found = true;
    finding.detail = fmt::format("for CUDA {}.{}", version / 1000, version % 1000 / 10);
    return finding;
}

Finding findCupti()
{
    Finding finding{.key = "cupti", .title = "CUPTI"};
    constexpr const char* kDisables = "the recording of GPU kernels (tracing kernels and api)";
    const SharedLibrary library(besideLibTorch("cu13", "libcupti.so.13"));
    if (!library.opened()) return missing(std::move(finding), library.reason(), kDisables);
    std::uint32_t version = 0;
    const auto getVersion = library.function<int(std::uint32_t*)>("cuptiGetVersion");
    if (getVersion == nullptr || getVersion(&version) != 0) {
        return missing(std::move(finding), library.file().string() + " does not tell its version", kDisables);
    }
    finding.found = true;
    finding.detail = fmt::format("API version {}", version);
    return finding;
}

Finding findNccl()
{
    Finding finding{.key = "nccl", .title = "NCCL"};
    constexpr const char* kDisables = "hand-over from GPU to GPU by NCCL in mode processes; it goes by way of the host then";
    const SharedLibrary library(besideLibTorch("nccl", "libnccl.so.2"));
    if (!library.opened()) return missing(std::move(finding), library.reason() + " (./run --cuda fetches it)", kDisables);
    int version = 0;
    const auto getVersion = library.function<int(int*)>("ncclGetVersion");
    if (getVersion == nullptr || getVersion(&version) != 0) {
        return missing(std::move(finding), library.file().string() + " does not tell its version", kDisables);
    }
    finding.found = true;
    finding.detail = fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
    return finding;
}

namespace {

// The driver numbers its devices from 0, as CUDA does. What it does not tell stays empty.
FoundGpu examineGpu(const SharedLibrary& driver, int device)
{
    FoundGpu gpu;
    std::array<char, 128> name{};
    const auto getName = driver.function<int(char*, int, int)>("cuDeviceGetName");
    if (getName != nullptr && getName(name.data(), static_cast<int>(name.size()) - 1, device) == 0) gpu.name = name.data();
    std::size_t memory = 0;
    const auto getMemory = driver.function<int(std::size_t*, int)>("cuDeviceTotalMem_v2");
    if (getMemory != nullptr && getMemory(&memory, device) == 0) gpu.memory = static_cast<traces::Bytes>(memory);
    int major = 0;
    int minor = 0;
    const auto getAttribute = driver.function<int(int*, int, int)>("cuDeviceGetAttribute");
    if (getAttribute != nullptr && getAttribute(&major, kComputeCapabilityMajor, device) == 0 &&
        getAttribute(&minor, kComputeCapabilityMinor, device) == 0)
        gpu.computeCapability = fmt::format("{}.{}", major, minor);
    return gpu;
}

// The module holds what of LibTorch is for GPUs. It is not opened here: that loads gigabytes.
std::string noCudaModule()
{
    const std::filesystem::path module = programFolder() / runtime::kCudaModule;
    std::error_code ignored;
    if (std::filesystem::exists(module, ignored)) return {};
    return fmt::format("{}: {} is not there (./run --cuda builds it)", kNoGpuRuns, module.string());
}

} // namespace

Finding findGpus()
{
    Finding finding{.key = kGpusKey, .title = "GPUs"};
    const SharedLibrary driver("libcuda.so.1");
    const auto init = driver.function<int(unsigned)>("cuInit");
    const auto getCount = driver.function<int(int*)>("cuDeviceGetCount");
    if (init == nullptr || getCount == nullptr) return missing(std::move(finding), "no NVIDIA driver", kNoGpuRuns);
    int count = 0;
    if (init(0) != 0 || getCount(&count) != 0 || count == 0)
        return missing(std::move(finding), "the driver finds none", kNoGpuRuns);

    finding.found = true;
    finding.detail = fmt::format("{}", count);
    for (int device = 0; device < count; ++device) {
        const FoundGpu& gpu = finding.gpus.emplace_back(examineGpu(driver, device));
        finding.detail += fmt::format("{} {} ({})", device == 0 ? ":" : ",", gpu.name, traces::formatSize(gpu.memory));
    }
    finding.disables = noCudaModule();
    return finding;
}

} // namespace stagecraft::cli
