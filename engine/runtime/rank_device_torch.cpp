// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rank_device_torch.h"

#include "engine/probe/tagging_allocator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace stagecraft::runtime {

namespace {

constexpr c10::EventFlag kTimed = c10::EventFlag::BACKEND_DEFAULT;

c10::Stream newStream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device); }

// LibTorch gives a block of the host back with an event on each stream that used it. After a failure for good that throws, and out of a
// destructor it would end the process before anybody knows why.
void giveBackHostBlock(void* context) noexcept
{
    const std::unique_ptr<at::DataPtr> block(static_cast<at::DataPtr*>(context));
    const c10::DeleterFnPtr giveBack = block->get_deleter();
    try {
        giveBack(block->release_context());
    } catch (...) { // a device that has failed uses nothing any more
    }
}

at::DataPtr onHost(c10::DeviceType of, std::size_t bytes)
{
    auto block = std::make_unique<at::DataPtr>(at::getHostAllocator(of)->allocate(bytes));
    void* const data = block->get();
    return {data, block.release(), &giveBackHostBlock, c10::DeviceType::CPU};
}

} // namespace

StreamMoment::StreamMoment(const c10::Stream& stream, std::shared_ptr<const Base> base) : event_(stream.device_type(), kTimed), base_(std::move(base))
{
    event_.record(stream);
}

TimeNs StreamMoment::time() const { return base_->time + std::llround(base_->event.elapsedTime(event_) * 1e6); }

RankDevice::RankDevice(c10::Device device, const Clock& clock)
    : device_(device), clock_(&clock), stream_(newStream(device)), copies_(newStream(device))
{
}

RankDevice RankDevice::beside() const
{
    RankDevice other;
    if (isCpu()) return other;
    other.device_ = device_;
    other.clock_ = clock_;
    other.stream_ = other.copies_ = newStream(device());
    return other;
}

void RankDevice::useHere() const
{
    if (!isCpu()) c10::impl::VirtualGuardImpl(device().type()).setDevice(device());
}

void RankDevice::addStream() { beside_ = newStream(device()); }

void RankDevice::turnTo(std::size_t which)
{
    if (which == turned_) return;
    stream_.swap(beside_);
    turned_ = which;
}

void RankDevice::letOtherWait() const
{
    if (beside_) mark()->before(*beside_);
}

void RankDevice::warmUp() const
{
    if (isCpu()) return;
    const AllocationScope nobody({});
    const at::NoGradGuard noGrad;
    constexpr std::int64_t kSide = 64;
    for (const std::optional<c10::Stream>& stream : {stream_, beside_}) {
        if (!stream) continue;
        const Scope here(stream);
        const at::Tensor a = at::ones({kSide, kSide}, at::TensorOptions(device()));
        const at::Tensor product = at::linear(at::mm(a, a), a, a.select(0, 0));
        stream->synchronize();
    }
}

// The event lies between two looks at the clock; the tightest of several counts, half way.
void RankDevice::beginStep()
{
    if (isCpu()) return;
    constexpr int kTries = 5;
    const Scope here = enter();
    TimeNs tightest = std::numeric_limits<TimeNs>::max();
    for (int i = 0; i < kTries; ++i) {
        auto base = std::make_shared<StreamMoment::Base>(StreamMoment::Base{c10::Event(stream_->device_type(), kTimed), 0});
        const TimeNs before = clock_->now();
        base->event.record(*stream_);
        base->event.synchronize();
        const TimeNs width = clock_->now() - before;
        if (width >= tightest) continue;
        tightest = width;
        base->time = before + width / 2;
        base_ = std::move(base);
    }
}

DeviceMark RankDevice::mark() const { return isCpu() ? nullptr : std::make_shared<const StreamMoment>(*stream_, base_); }

DeviceMark RankDevice::markOn(const c10::Stream& stream) const { return std::make_shared<const StreamMoment>(stream, base_); }

void RankDevice::drain() const
{
    for (const std::optional<c10::Stream>& stream : {stream_, beside_})
        if (stream) stream->synchronize();
}

c10::Stream RankDevice::anotherStream() const { return newStream(device()); }

c10::Stream RankDevice::streamOn(c10::Device other)
{
    auto known = elsewhere_.find(other);
    if (known == elsewhere_.end()) known = elsewhere_.emplace(other, newStream(other)).first;
    return known->second;
}

RankDevice::Fetched RankDevice::fetch(Boundary from)
{
    if (!from.tensor.defined()) return {};
    if (from.tensor.device() == device()) {
        if (from.ready) from.ready->before(*stream_);
        return {std::move(from.tensor), std::move(from.ready)};
    }
    const at::NoGradGuard noGrad;
    const bool leaf = from.tensor.requires_grad();
    if (isCpu()) {
        if (from.ready) from.ready->wait();
        return {from.tensor.cpu().requires_grad_(leaf), std::move(from.ready)};
    }
    // LibTorch copies on the stream that is current where the source is, after and before what the one that is current here does
    std::vector<c10::Stream> streams{*copies_};
    if (!from.tensor.is_cpu()) {
        streams.push_back(streamOn(from.tensor.device()));
        if (from.ready) from.ready->before(streams.back());
    }
    Fetched copy;
    {
        const c10::MultiStreamGuard guard(streams);
        const c10::DeviceGuard device(copies_->device());
        copy = {from.tensor.to(copies_->device(), /*non_blocking=*/true).requires_grad_(leaf), std::make_shared<const StreamMoment>(*copies_, base_),
                std::move(from.tensor)};
    }
    copy.ready->before(*stream_);
    return copy;
}

void RankDevice::await(const DeviceMark& mark) const
{
    if (!mark) return;
    if (isCpu()) mark->wait();
    else mark->before(*stream_);
}

void RankDevice::awaitWithBoth(const DeviceMark& mark) const
{
    await(mark);
    if (mark && beside_) mark->before(*beside_);
}

void RankDevice::copy(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from, const DeviceMark& ready)
{
    if (from.empty()) return;
    const at::NoGradGuard noGrad;
    const c10::Device source = from.front().device();
    if (isCpu() || source.is_cpu() || source == device()) {
        await(ready);
        at::_foreach_copy_(to, from);
        return;
    }
    const c10::Stream there = streamOn(source);
    if (ready) ready->before(there);
    const c10::MultiStreamGuard guard({there, *stream_}); // as in fetch()
    at::_foreach_copy_(to, from, /*non_blocking=*/true);
}

at::DataPtr RankDevice::copied(const at::DataPtr& from, std::size_t bytes, c10::Device to)
{
    const at::NoGradGuard noGrad;
    const auto size = static_cast<std::int64_t>(bytes);
    const auto make = [&] {
        const c10::OptionalDeviceGuard guard(to.is_cpu() ? std::nullopt : std::optional(to));
        at::DataPtr made = to.is_cpu() && !isCpu() ? onHost(device().type(), bytes) : c10::GetAllocator(to.type())->allocate(bytes);
        const auto tensor = [&](const at::DataPtr& block, c10::Device where) {
            return at::for_blob(block.get(), size).options(at::TensorOptions(where).dtype(at::kByte)).target_device(where).make_tensor();
        };
        tensor(made, to).copy_(tensor(from, from.device()), /*non_blocking=*/!isCpu());
        return made;
    };
    const c10::Device other = to == device() ? from.device() : to;
    if (isCpu() || other.is_cpu() || other == device()) return make();
    const c10::MultiStreamGuard guard({streamOn(other), *stream_}); // as in fetch()
    return make();
}

} // namespace stagecraft::runtime
