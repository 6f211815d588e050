// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/cuda_devices.h"

#include <filesystem>

#include <dlfcn.h>

namespace stagecraft::runtime {

namespace {

// What is there where the module cannot say.
class NoDevices final : public DeviceSource {
public:
    explicit NoDevices(std::string why) : why_(std::move(why)) {}

    [[nodiscard]] const std::vector<GpuInfo>& gpus() const override { return gpus_; }
    [[nodiscard]] const std::string& whyNone() const override { return why_; }
    [[nodiscard]] std::int8_t deviceType() const override { return 0; }
    [[nodiscard]] bool reaches(int, int) const override { return false; }
    [[nodiscard]] double matmulPeak(int, engine::Precision) const override { return 0; }
    void bookMemory(const DeviceBooks&) const override {}
    [[nodiscard]] std::string fault(const std::vector<int>&) const override { return {}; }
    void giveBackMemory() const override {}

private:
    std::vector<GpuInfo> gpus_;
    std::string why_;
};

const DeviceSource& none(std::string why)
{
    static const NoDevices devices(std::move(why));
    return devices;
}

std::string lastError()
{
    const char* error = ::dlerror();
    return error != nullptr ? error : "no reason is told";
}

// LibTorch's CUDA side stays open: it registers itself for all of the process.
const DeviceSource& open()
{
    if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) return none("libcuda.so.1 is not on this machine: no NVIDIA driver");
    std::error_code unknown;
    const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
    const std::filesystem::path module = folder / kCudaModule;
    if (!std::filesystem::exists(module, unknown))
        return none(module.string() + " is not there: this build has no CUDA module. ./run --cuda fetches what it takes and builds it");
    void* const handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) return none("the CUDA module cannot be opened: " + lastError() + " (./run --cuda fetches NVIDIA's libraries)");
    const auto entry = reinterpret_cast<CudaModuleEntry>(::dlsym(handle, kCudaModuleEntry));
    return entry != nullptr ? *entry() : none("the CUDA module is of another build: " + lastError());
}

} // namespace

const DeviceSource& cudaDevices()
{
    static const DeviceSource& devices = open();
    return devices;
}

} // namespace stagecraft::runtime
