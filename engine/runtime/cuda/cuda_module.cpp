// SPDX-License-Identifier: Apache-2.0
//
// The module stagecraft_cuda: what LibTorch does not tell of all kinds of devices alike (../device_source.h), for NVIDIA's. Linking it
// makes LibTorch's CUDA kernels, streams and allocator known to the process that opens it.
#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/precision_torch.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <mutex>

namespace stagecraft::runtime {

namespace {

std::string placeOnBus(const cudaDeviceProp& properties)
{
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%04x:%02x:%02x", static_cast<unsigned>(properties.pciDomainID), static_cast<unsigned>(properties.pciBusID),
                  static_cast<unsigned>(properties.pciDeviceID));
    return text.data();
}

class CudaDevices final : public DeviceSource {
public:
    CudaDevices()
    {
        int count = 0;
        const cudaError_t counted = cudaGetDeviceCount(&count);
        if (counted != cudaSuccess) {
            why_ = std::string("CUDA finds none: ") + cudaGetErrorString(counted);
            return;
        }
        for (int device = 0; device < count; ++device) {
            cudaDeviceProp properties{};
            if (const cudaError_t told = cudaGetDeviceProperties(&properties, device); told != cudaSuccess) {
                gpus_.clear();
                why_ = "GPU " + std::to_string(device) + " does not answer: " + cudaGetErrorString(told);
                return;
            }
            gpus_.push_back({.name = properties.name,
                             .memory = static_cast<traces::Bytes>(properties.totalGlobalMem),
                             .architecture = std::to_string(properties.major) + "." + std::to_string(properties.minor),
                             .bus = placeOnBus(properties)});
        }
        if (gpus_.empty()) why_ = "CUDA finds none; is one hidden by CUDA_VISIBLE_DEVICES?";
        if (gpus_.empty() || at::hasCUDA()) return;
        gpus_.clear();
        why_ = "LibTorch does not find the GPUs that CUDA finds; is its CUDA side of another version?";
    }

    [[nodiscard]] const std::vector<GpuInfo>& gpus() const override { return gpus_; }
    [[nodiscard]] const std::string& whyNone() const override { return why_; }
    [[nodiscard]] std::int8_t deviceType() const override { return static_cast<std::int8_t>(c10::DeviceType::CUDA); }
    [[nodiscard]] bool reaches(int from, int to) const override
    {
        int can = 0;
        return from == to || (cudaDeviceCanAccessPeer(&can, to, from) == cudaSuccess && can != 0);
    }

    [[nodiscard]] double matmulPeak(int gpu, engine::Precision precision) const override
    {
        constexpr std::int64_t kSide = 4096; // 137 GFLOP a product: enough to fill any GPU
        constexpr int kAhead = 2;            // choose a kernel, and keep the GPU at work while the others are launched
        constexpr int kTimed = 10;           // between two events, so that launching them takes none of the time
        constexpr int kRounds = 3;           // the first may meet a clock that is low
        const at::NoGradGuard noGrad;
        const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
        const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
        const at::Tensor a = at::rand({kSide, kSide}, at::TensorOptions(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu))).dtype(scalarType(precision)));
        at::Tensor product = at::empty_like(a);
        const auto multiply = [&](int times) {
            for (int i = 0; i < times; ++i) at::mm_out(product, a, a);
        };
        cudaEvent_t begin{};
        cudaEvent_t end{};
        C10_CUDA_CHECK(cudaEventCreate(&begin));
        C10_CUDA_CHECK(cudaEventCreate(&end));
        float best = 0; // ms
        for (int i = 0; i < kRounds; ++i) {
            multiply(kAhead);
            C10_CUDA_CHECK(cudaEventRecord(begin, stream));
            multiply(kTimed);
            C10_CUDA_CHECK(cudaEventRecord(end, stream));
            C10_CUDA_CHECK(cudaEventSynchronize(end));
            float taken = 0;
            C10_CUDA_CHECK(cudaEventElapsedTime(&taken, begin, end));
            if (i == 0 || taken < best) best = taken;
        }
        C10_CUDA_CHECK(cudaEventDestroy(begin));
        C10_CUDA_CHECK(cudaEventDestroy(end));
        return best > 0 ? 2.0 * kSide * kSide * kSide * kTimed * 1e3 / static_cast<double>(best) : 0;
    }

    [[nodiscard]] std::string fault(const std::vector<int>& gpus) const override
    {
        static_cast<void>(cudaGetLastError()); // one that is over; those for good come again
        for (const int gpu : gpus) {
            cudaError_t answer = cudaSetDevice(gpu);
            if (answer == cudaSuccess) answer = cudaDeviceSynchronize();
            if (answer != cudaSuccess) return "GPU " + std::to_string(gpu) + ": " + cudaGetErrorString(answer);
        }
        return {};
    }

    void giveBackMemory() const override
    {
        at::cuda::clearCublasWorkspaces(); // kept by stream, and the next run has others
        c10::cuda::CUDACachingAllocator::emptyCache();
        at::getHostAllocator(c10::DeviceType::CUDA)->empty_cache(); // what was offloaded to
    }

    // There is no way to detach a tracker; the first one stays.
    void bookMemory(const DeviceBooks& books) const override
    {
        static std::once_flag once;
        std::call_once(once, [&] {
            at::globalContext().lazyInitDevice(c10::DeviceType::CUDA); // before it there is no allocator to attach to
            using Entry = c10::CachingDeviceAllocator::TraceEntry;
            c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([books](const Entry& entry) {
                const void* const block = reinterpret_cast<const void*>(entry.addr_); // an address, or where the entry tells no block a number
                if (entry.action_ == Entry::ALLOC) books.taken(block, static_cast<traces::Bytes>(entry.size_));
                if (entry.action_ == Entry::FREE_COMPLETED) books.gone(block);
            });
        });
    }

private:
    std::vector<GpuInfo> gpus_;
    std::string why_;
};

} // namespace

extern "C" __attribute__((visibility("default"))) const DeviceSource* stagecraftCudaDevices()
{
    static const auto* devices = new CudaDevices; // CUDA's objects must not end with the process's static ones
    return devices;
}

} // namespace stagecraft::runtime
