// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/fake_gpu/fake_gpu.h"

#include "tests/runtime/fake_gpu/stream_books.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/TensorOperators.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace stagecraft::test {

namespace {

using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

constexpr DeviceType kType = DeviceType::PrivateUse1;
constexpr DeviceIndex kMostDevices = 8;

FakeGpus::Setup setup;
runtime::DeviceBooks theBooks; // as the first run asks for

StreamBooks& books()
{
    static auto* all = new StreamBooks; // LibTorch may ask until the process ends
    return *all;
}

// Streams are numbered over all devices. Number i < kMostDevices is the default one of device i.
Device deviceOf(DeviceIndex index) { return {kType, index}; }

thread_local DeviceIndex currentDevice = 0;
std::array<std::atomic<bool>, kMostDevices> contexts; // as CUDA makes them
thread_local std::array<int, kMostDevices> currentStream{-1, -1, -1, -1, -1, -1, -1, -1}; // -1: the default one

int currentStreamOf(DeviceIndex device)
{
    const int stream = currentStream[static_cast<std::size_t>(device)];
    return stream < 0 ? device : stream;
}

Stream streamOf(Device device, int number) { return Stream(Stream::UNSAFE, device, number); }

void expectSound() { TORCH_CHECK(!books().failed(), "CUDA error: an illegal memory access was encountered"); }

// LibTorch's way with events, which makes a context on the device that it goes back to.
void goToAndBack(DeviceIndex device)
{
    contexts[static_cast<std::size_t>(device)] = true;
    contexts[static_cast<std::size_t>(currentDevice)] = true;
}

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
    [[nodiscard]] DeviceType type() const override { return kType; }
    [[nodiscard]] Device exchangeDevice(Device device) const override
    {
        const Device before = deviceOf(currentDevice);
        currentDevice = device.index();
        return before;
    }
    [[nodiscard]] Device getDevice() const override { return deviceOf(currentDevice); }
    void setDevice(Device device) const override
    {
        currentDevice = device.index();
        contexts[static_cast<std::size_t>(currentDevice)] = true;
    }
    void uncheckedSetDevice(Device device) const noexcept override { currentDevice = device.index(); }
    [[nodiscard]] Stream getStream(Device device) const override { return streamOf(device, currentStreamOf(device.index())); }
    [[nodiscard]] Stream getDefaultStream(Device device) const override { return streamOf(device, device.index()); }
    [[nodiscard]] void* getStreamNativeHandle(const Stream stream) const override { return reinterpret_cast<void*>(stream.id() + 1); }
    [[nodiscard]] Stream getStreamFromGlobalPool(Device device, bool) const override { return getNewStream(device, 0); }
    [[nodiscard]] Stream getNewStream(Device device, int) const override { return streamOf(device, books().newStream(device.index())); }
    [[nodiscard]] Stream exchangeStream(Stream stream) const override
    {
        const Stream before = getStream(stream.device());
        currentStream[static_cast<std::size_t>(stream.device_index())] = static_cast<int>(stream.id());
        return before;
    }
    void destroyEvent(void* event, DeviceIndex device) const noexcept override
    {
        if (event != nullptr) goToAndBack(device);
        delete static_cast<Mark*>(event);
    }
    void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override
    {
        expectSound();
        goToAndBack(stream.device_index());
        auto* mark = static_cast<Mark*>(*event);
        if (mark == nullptr) *event = mark = new Mark;
        *mark = books().record(static_cast<int>(stream.id()));
    }
    void block(void* event, const Stream& stream) const override
    {
        if (event != nullptr) books().block(static_cast<int>(stream.id()), *static_cast<Mark*>(event));
    }
    [[nodiscard]] bool queryEvent(void* event) const override
    {
        expectSound();
        return event == nullptr || books().reached(*static_cast<Mark*>(event));
    }
    [[nodiscard]] DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(setup.count); }
    [[nodiscard]] bool queryStream(const Stream& stream) const override { return books().reached(books().record(static_cast<int>(stream.id()))); }
    void synchronizeStream(const Stream& stream) const override
    {
        expectSound();
        books().waitOnHost(books().record(static_cast<int>(stream.id())));
    }
    void synchronizeEvent(void* event) const override
    {
        expectSound();
        if (event != nullptr) books().waitOnHost(*static_cast<Mark*>(event));
    }
    [[nodiscard]] double elapsedTime(void* from, void* to, DeviceIndex) const override
    {
        for (const void* each : {from, to}) TORCH_CHECK(books().reached(*static_cast<const Mark*>(each)), "an event is asked for its time that nobody has waited for");
        TORCH_CHECK(static_cast<Mark*>(from)->device == static_cast<Mark*>(to)->device, "the time between events of two devices");
        return static_cast<double>(books().timeOf(*static_cast<Mark*>(to)) - books().timeOf(*static_cast<Mark*>(from))) / 1e6; // ms
    }
};

// What an allocator that keeps what it was given back has taken from each GPU.
class Reserves {
public:
    void clear()
    {
        const std::lock_guard lock(mutex_);
        gpus_ = {};
        blocks_.clear();
        driverCalls_ = 0;
    }
    void take(DeviceIndex device, const void* block, std::size_t size)
    {
        const auto bytes = static_cast<traces::Bytes>(size);
        const std::lock_guard lock(mutex_);
        blocks_[block] = {device, bytes};
        Reserve& gpu = gpus_.at(static_cast<std::size_t>(device));
        gpu.now.active += bytes;
        gpu.now.mostActive = std::max(gpu.now.mostActive, gpu.now.active);
        gpu.peak = std::max(gpu.peak, gpu.now.active);
        const traces::Bytes segments = (gpu.now.active + FakeGpus::kSegment - 1) / FakeGpus::kSegment;
        gpu.now.reserved = std::max(gpu.now.reserved, segments * FakeGpus::kSegment);
    }
    void letGo(const void* block)
    {
        const std::lock_guard lock(mutex_);
        const auto found = blocks_.find(block);
        if (found == blocks_.end()) return; // of an earlier run
        gpus_.at(static_cast<std::size_t>(found->second.first)).now.active -= found->second.second;
        blocks_.erase(found);
    }
    [[nodiscard]] c10::CachingDeviceAllocator::DeviceStats stats(DeviceIndex device) const
    {
        const std::lock_guard lock(mutex_);
        const Reserve& gpu = gpus_.at(static_cast<std::size_t>(device));
        c10::CachingDeviceAllocator::DeviceStats stats;
        stats.active_bytes[0] = {.current = gpu.now.active, .peak = gpu.peak, .allocated = 0, .freed = 0};
        stats.reserved_bytes[0] = {.current = gpu.now.reserved, .peak = gpu.now.reserved, .allocated = 0, .freed = 0};
        return stats;
    }
    void forgetPeak(DeviceIndex device)
    {
        const std::lock_guard lock(mutex_);
        Reserve& gpu = gpus_.at(static_cast<std::size_t>(device));
        gpu.peak = gpu.now.active;
    }
    std::pair<std::size_t, std::size_t> freeAndTotal(DeviceIndex device)
    {
        const std::lock_guard lock(mutex_);
        ++driverCalls_;
        const traces::Bytes free = setup.memory - setup.besides - gpus_.at(static_cast<std::size_t>(device)).now.reserved;
        return {static_cast<std::size_t>(free), static_cast<std::size_t>(setup.memory)};
    }
    [[nodiscard]] FakeGpus::Memory of(int device) const
    {
        const std::lock_guard lock(mutex_);
        return gpus_.at(static_cast<std::size_t>(device)).now;
    }
    [[nodiscard]] int driverCalls() const
    {
        const std::lock_guard lock(mutex_);
        return driverCalls_;
    }

private:
    struct Reserve {
        FakeGpus::Memory now;
        traces::Bytes peak = 0; // that LibTorch may have forgotten
    };
    mutable std::mutex mutex_; // guards all below
    std::array<Reserve, kMostDevices> gpus_{};
    std::unordered_map<const void*, std::pair<DeviceIndex, traces::Bytes>> blocks_;
    int driverCalls_ = 0;
};

Reserves& reserves()
{
    static auto* all = new Reserves; // as the books
    return *all;
}

class DeviceMemory final : public c10::DeviceAllocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override
    {
        const Device device = deviceOf(currentDevice);
        if (bytes == 0) return {nullptr, nullptr, &letGo, device};
        const auto room = static_cast<std::size_t>(setup.memory - setup.besides) - books().held(currentDevice);
        TORCH_CHECK_WITH(OutOfMemoryError, bytes <= room, "CUDA out of memory. Tried to allocate ", bytes, " bytes; ", room, " are free");
        void* const data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
        books().take(currentStreamOf(currentDevice), data, bytes);
        reserves().take(currentDevice, data, bytes);
        if (theBooks.taken != nullptr) theBooks.taken(data, static_cast<traces::Bytes>(bytes));
        return {data, data, &letGo, device};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &letGo; }
    void copy_data(void* target, const void* source, std::size_t bytes) const override { default_copy_data(target, source, bytes); }
    bool initialized() override { return true; }
    void emptyCache(c10::MempoolId_t) override {}
    void recordStream(const c10::DataPtr&, Stream) override { throw std::logic_error("nothing here is kept alive by record_stream"); }
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override { return reserves().stats(device); }
    std::pair<std::size_t, std::size_t> getMemoryInfo(DeviceIndex device) override
    {
        expectSound();
        return reserves().freeAndTotal(device);
    }
    void resetAccumulatedStats(DeviceIndex) override {}
    void resetPeakStats(DeviceIndex device) override { reserves().forgetPeak(device); }

private:
    static void letGo(void* data)
    {
        if (data == nullptr) return;
        books().letGo(data);
        reserves().letGo(data);
        if (theBooks.gone != nullptr) theBooks.gone(data);
        std::free(data);
    }
};

// What a GPU copies to and from by itself: memory of the host as any other, here. LibTorch's records events as it takes a block back, which
// throws where the device has failed.
class PinnedMemory final : public at::HostAllocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override
    {
        void* const data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
        return {data, data, &takeBack, c10::Device(DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &takeBack; }
    void copy_data(void* target, const void* source, std::size_t bytes) const override { default_copy_data(target, source, bytes); }
    bool record_event(void*, void*, Stream) override { return true; }
    void empty_cache() override {}
    at::HostStats get_stats() override { return {}; }
    void reset_accumulated_stats() override {}
    void reset_peak_stats() override {}

private:
    static void takeBack(void* data)
    {
        std::free(data);
        expectSound();
    }
};

struct Hooks final : at::PrivateUse1HooksInterface {
    [[nodiscard]] bool isBuilt() const override { return true; }
    [[nodiscard]] bool isAvailable() const override { return true; }
    [[nodiscard]] bool hasPrimaryContext(DeviceIndex) const override { return true; }
};

// --- operations ----------------------------------------------------------------------------------------------------------

bool isOurs(const Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

Tensor emptyLike(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type, Device device)
{
    const c10::OptionalDeviceGuard guard(device);
    return at::Tensor(at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(kType), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type));
}

// The same memory, as the CPU's kernels take it.
Tensor onHost(const Tensor& tensor)
{
    if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
    return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

// The name stays where it is.
void operateOn(DeviceIndex device, const char* name, const std::vector<StreamBooks::Access>& accesses, TimeNs cost)
{
    expectSound();
    const int stream = currentStreamOf(device);
    const traces::Interval when = books().operate(stream, name, accesses, cost);
    if (setup.onOperation) setup.onOperation(name, stream, when);
}

struct Call {
    std::vector<std::pair<Tensor, Tensor>> tensors; // ours, and the same on the host
    std::vector<StreamBooks::Access> accesses;
    std::optional<Device> device;

    // `out`: it is made anew, whatever was in it.
    Tensor enter(const Tensor& tensor, bool writes, bool out = false)
    {
        if (!isOurs(tensor)) {
            TORCH_CHECK(!tensor.defined() || tensor.dim() == 0, "a tensor of the CPU among those of a device");
            return tensor;
        }
        TORCH_CHECK(!device || *device == tensor.device(), "tensors of two devices in one operation");
        device = tensor.device();
        accesses.push_back({tensor.storage().data(), writes});
        tensors.emplace_back(tensor, out ? at::empty({0}, tensor.options().device(at::kCPU)) : onHost(tensor));
        return tensors.back().second;
    }
    Tensor leave(const Tensor& result)
    {
        if (!result.defined() || isOurs(result)) return result;
        for (const auto& [ours, host] : tensors) {
            if (host.unsafeGetTensorImpl() != result.unsafeGetTensorImpl()) continue;
            if (host.sizes() == ours.sizes() && host.data_ptr() == ours.data_ptr()) return ours;
            if (host.sizes() != ours.sizes()) ours.resize_(host.sizes());
            onHost(ours).copy_(host);
            accesses.push_back({ours.storage().data(), true});
            return ours;
        }
        Tensor made = emptyLike(result.sizes(), result.strides(), result.scalar_type(), *device);
        onHost(made).copy_(result);
        if (made.numel() > 0) accesses.push_back({made.storage().data(), true});
        return made;
    }
};

// Every operation that has no kernel of its own below.
void compute(const c10::OperatorHandle& operation, torch::jit::Stack* stack)
{
    const c10::FunctionSchema& schema = operation.schema();
    Call call;
    const std::size_t first = stack->size() - schema.arguments().size();
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
        c10::IValue& value = (*stack)[first + i];
        const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
        const bool writes = alias != nullptr && alias->isWrite();
        if (value.isTensor()) {
            value = call.enter(value.toTensor(), writes, writes && schema.arguments()[i].kwarg_only());
        } else if (value.isTensorList()) {
            std::vector<Tensor> list = value.toTensorVector();
            for (Tensor& each : list) each = call.enter(each, writes);
            value = c10::IValue(list);
        } else if (value.isOptionalTensorList()) {
            c10::List<std::optional<Tensor>> list = value.toOptionalTensorList();
            c10::List<std::optional<Tensor>> host;
            for (const std::optional<Tensor> each : list) host.push_back(each ? std::optional(call.enter(*each, false)) : std::nullopt);
            value = host;
        } else if (value.isDevice()) {
            call.device = value.toDevice();
            value = Device(at::kCPU);
        }
    }
    operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    for (std::size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
        c10::IValue& value = (*stack)[i];
        if (value.isTensor()) {
            value = call.leave(value.toTensor());
        } else if (value.isTensorList()) {
            std::vector<Tensor> list = value.toTensorVector();
            for (Tensor& each : list) each = call.leave(each);
            value = c10::IValue(list);
        }
    }
    operateOn(call.device->index(), schema.name().c_str(), call.accesses, setup.ofOperation);
}

Tensor emptyMemoryFormat(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>,
                         std::optional<at::MemoryFormat> format)
{
    const Device on = device && device->has_index() ? *device : deviceOf(currentDevice);
    const c10::OptionalDeviceGuard guard(on);
    return at::Tensor(at::detail::empty_generic(sizes, c10::GetAllocator(kType), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                type.value_or(at::kFloat), format));
}

Tensor emptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type, std::optional<at::Layout>, std::optional<Device> device,
                    std::optional<bool>)
{
    return emptyLike(sizes, strides, type.value_or(at::kFloat), device && device->has_index() ? *device : deviceOf(currentDevice));
}

void waitForStream(DeviceIndex device) { GuardImpl().synchronizeStream(GuardImpl().getStream(deviceOf(device))); }

// As CUDA's: on the current stream of the source, after the target's and before what comes later on that; from and to pageable memory of
// the host the caller waits.
Tensor copyFrom(const Tensor& from, const Tensor& to, bool nonBlocking)
{
    expectSound();
    const bool fromOurs = isOurs(from);
    const bool toOurs = isOurs(to);
    if (fromOurs && toOurs && from.device() != to.device()) {
        const int source = currentStreamOf(from.device().index());
        const int target = currentStreamOf(to.device().index());
        books().block(source, books().record(target));
        onHost(to).copy_(onHost(from));
        books().operate(source, "a copy between devices", {{from.storage().data(), false}, {to.storage().data(), true}}, setup.ofCopy);
        books().block(target, books().record(source));
        return to;
    }
    (toOurs ? onHost(to) : to).copy_(fromOurs ? onHost(from) : from);
    const DeviceIndex device = (fromOurs ? from : to).device().index();
    std::vector<StreamBooks::Access> accesses;
    if (fromOurs) accesses.push_back({from.storage().data(), false});
    if (toOurs) accesses.push_back({to.storage().data(), true});
    operateOn(device, "a copy", accesses, 0);
    if (fromOurs != toOurs && !nonBlocking) waitForStream(device);
    return to;
}

Tensor copyFromAndResize(const Tensor& from, const Tensor& to)
{
    to.resize_(from.sizes());
    return copyFrom(from, to, false);
}

at::Scalar localScalar(const Tensor& tensor)
{
    operateOn(tensor.device().index(), "reading a value", {{tensor.storage().data(), false}}, 0);
    waitForStream(tensor.device().index());
    return onHost(tensor).item();
}

const Tensor& resize(const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat>)
{
    const std::size_t bytes = at::detail::computeStorageNbytesContiguous(sizes, self.itemsize(), static_cast<std::size_t>(self.storage_offset()));
    if (bytes > self.storage().nbytes()) {
        const c10::OptionalDeviceGuard guard(self.device());
        self.storage().set_data_ptr_noswap(c10::GetAllocator(kType)->allocate(bytes));
        self.storage().set_nbytes(bytes);
    }
    self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
    return self;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("empty.memory_format", &emptyMemoryFormat);
    m.impl("empty_strided", &emptyStrided);
    m.impl("as_strided", &at::native::as_strided_tensorimpl);
    m.impl("view", &at::native::view);
    m.impl("resize_", &resize);
    m.impl("_copy_from", &copyFrom);
    m.impl("_copy_from_and_resize", &copyFromAndResize);
    m.impl("_local_scalar_dense", &localScalar);
    m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
}

class Source final : public runtime::DeviceSource {
public:
    [[nodiscard]] const std::vector<runtime::GpuInfo>& gpus() const override { return gpus_; }
    [[nodiscard]] const std::string& whyNone() const override { return none_; }
    [[nodiscard]] std::int8_t deviceType() const override { return static_cast<std::int8_t>(kType); }
    [[nodiscard]] bool reaches(int, int) const override { return setup.peerAccess; }
    [[nodiscard]] double matmulPeak(int gpu, engine::Precision) const override
    {
        books().operate(gpu, "a product", {}, 0); // on the default stream
        waitForStream(static_cast<DeviceIndex>(gpu));
        return FakeGpus::kPeak;
    }
    void bookMemory(const runtime::DeviceBooks& given) const override
    {
        static std::once_flag once; // several runs may begin at once, as processes do
        std::call_once(once, [&] { theBooks = given; });
    }
    [[nodiscard]] std::string fault(const std::vector<int>&) const override { return books().failed() ? "GPU 0: an illegal memory access was encountered" : ""; }
    void giveBackMemory() const override {}

    std::vector<runtime::GpuInfo> gpus_;
    std::string none_;
};
Source devices;

class HostClock final : public runtime::Clock {
public:
    [[nodiscard]] TimeNs now() const noexcept override { return books().hostTime(); }
};
const HostClock hostClock;

} // namespace

FakeGpus::FakeGpus()
{
    for (DeviceIndex i = 0; i < kMostDevices; ++i) books().newStream(i);
    static DeviceMemory memory;
    static Hooks hooks;
    static GuardImpl guard;
    c10::register_privateuse1_backend("fakegpu"); // without a name LibTorch knows no such accelerator
    at::RegisterPrivateUse1HooksInterface(&hooks);
    c10::SetAllocator(kType, &memory);
    static PinnedMemory pinned;
    at::setHostAllocator(kType, &pinned);
    c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kType)].store(&guard);
}

FakeGpus& FakeGpus::get()
{
    static auto* gpus = new FakeGpus;
    return *gpus;
}

void FakeGpus::reset(const Setup& wanted)
{
    setup = wanted;
    for (std::atomic<bool>& each : test::contexts) each = false;
    constexpr int kNever = std::numeric_limits<int>::max();
    reserves().clear();
    books().reset({.failsFrom = wanted.failsFrom.value_or(kNever),
                   .hangsFrom = wanted.hangsFrom.value_or(kNever),
                   .hangsFromExchange = wanted.hangsFromExchange.value_or(kNever),
                   .hanging = wanted.hangingGpu});
    devices.gpus_.clear();
    for (int i = 0; i < wanted.count; ++i) devices.gpus_.push_back({"fake GPU", wanted.memory, "0.0", "bus " + std::to_string(i)});
    devices.none_ = wanted.count == 0 ? "the test has none" : "";
}

const runtime::DeviceSource& FakeGpus::source() const { return devices; }
const runtime::Clock& FakeGpus::clock() const { return hostClock; }
std::vector<std::string> FakeGpus::races() const { return books().races(); }
std::function<void()> FakeGpus::exchange(const Side& side)
{
    const auto stream = static_cast<int>(reinterpret_cast<std::intptr_t>(side.stream)) - 1;
    std::vector<StreamBooks::Access> accesses;
    for (const void* each : side.reads) accesses.push_back({books().blockOf(each), false});
    for (const void* each : side.writes) accesses.push_back({books().blockOf(each), true});
    return [exchange = books().exchange(stream, accesses)] { books().hasCome(*exchange); };
}

void FakeGpus::meet(const std::vector<void*>& handles)
{
    std::vector<int> streams;
    for (void* const handle : handles) streams.push_back(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1);
    const std::vector<traces::Interval> spans = books().meet(streams, setup.ofExchange);
    for (std::size_t i = 0; setup.onExchange && i < streams.size(); ++i) setup.onExchange(books().deviceOf(streams[i]), streams[i], spans[i]);
}

int FakeGpus::currentDevice() const { return test::currentDevice; }
std::vector<int> FakeGpus::contexts() const
{
    std::vector<int> made;
    for (int i = 0; i < setup.count; ++i)
        if (test::contexts[static_cast<std::size_t>(i)]) made.push_back(i);
    return made;
}
int FakeGpus::operations() const { return books().operations(); }
int FakeGpus::hostWaits() const { return books().hostWaits(); }
bool FakeGpus::hangs() const { return books().hangs(); }
int FakeGpus::exchanges(int gpu) const { return books().exchanges(gpu); }
void FakeGpus::release() { books().release(); }
FakeGpus::Memory FakeGpus::memory(int gpu) const { return reserves().of(gpu); }
int FakeGpus::driverCalls() const { return reserves().driverCalls(); }
int FakeGpus::blocks() const { return books().blocks(); }

} // namespace stagecraft::test
