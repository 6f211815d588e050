// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/communicator.h"

#include "engine/transport/nccl/nccl_errors.h"

#include <nccl.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

namespace {

int typeOf(NcclType type)
{
    switch (type) {
    case NcclType::Float32: return ncclFloat32;
    case NcclType::Float64: return ncclFloat64;
    case NcclType::Float16: return ncclFloat16;
    case NcclType::BFloat16: return ncclBfloat16;
    case NcclType::Int64: return ncclInt64;
    }
    return ncclNumTypes;
}

std::string seconds(TimeNs time) { return std::to_string(time / 1'000'000'000) + " s"; }

bool failed(NcclResult result) { return result != kNcclSuccess && result != kNcclInProgress; }

} // namespace

NcclResult NcclCommunicator::begin(const NcclId& id, int generation)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    generation_.store(generation);
    issuer_.store(std::thread::id{});
    void* handle = nullptr;
    const NcclResult result = context_.api.commInitRankConfig(&handle, size_, id, rank_, &config);
    handle_.store(handle);
    return result;
}

void NcclCommunicator::opened()
{
    if (handle_.load() != nullptr) gate_.open();
}

Expected<void> NcclCommunicator::settle(std::string_view doing, NcclResult result, TimeNs patience)
{
    const TimeNs begin = context_.clock.now();
    for (int round = 0; result == kNcclInProgress; ++round) {
        if (context_.fault.any()) return ended();
        if (context_.clock.now() - begin > patience)
            return fail("NCCL could not " + std::string(doing) + " within " + seconds(patience) + ": another rank has not come to the same, or hangs");
        context_.pause(round);
        if (!gate_.enter([&] { context_.pause(round); })) return ended();
        NcclResult state = kNcclSuccess;
        const NcclResult asked = context_.api.commGetAsyncError(handle_.load(), &state);
        gate_.leave();
        result = asked != kNcclSuccess ? asked : state;
    }
    if (result != kNcclSuccess) return fail(ncclError(context_.api, doing, result).message);
    return {};
}

template <class Calls>
Expected<void> NcclCommunicator::call(std::string_view doing, Calls&& calls)
{
    if (context_.fault.any()) return ended();
    if (auto allowed = checkThread(); !allowed.ok()) return allowed;
    if (!gate_.enter([&] { context_.pause(0); })) return ended();
    const NcclResult result = calls(context_.api, handle_.load());
    gate_.leave();
    return settle(doing, result, context_.patience.call);
}

namespace {

template <class Part, class Take>
NcclResult asGroup(const NcclApi& api, std::span<const Part> parts, Take&& take)
{
    if (const NcclResult begun = api.groupStart(); begun != kNcclSuccess) return begun;
    NcclResult first = kNcclSuccess;
    for (const Part& part : parts) {
        const NcclResult taken = take(part);
        if (failed(taken)) {
            first = taken;
            break;
        }
    }
    const NcclResult ended = api.groupEnd(); // also after a failure: a group is of this thread, and would hold whatever comes next
    return first != kNcclSuccess ? first : ended;
}

} // namespace

Expected<void> NcclCommunicator::exchange(std::string_view what, std::span<const NcclPart> parts, void* stream)
{
    if (auto sound = checkParts(parts); !sound.ok()) return sound.error().in(named() + ", " + std::string(what));
    return call("put " + std::string(what) + " on its stream", [&](const NcclApi& api, void* handle) {
        return asGroup(api, parts, [&](const NcclPart& part) {
            return part.side == NcclPart::Side::Send ? api.send(part.buffer, part.bytes, ncclInt8, part.peer, handle, stream)
                                                     : api.recv(part.buffer, part.bytes, ncclInt8, part.peer, handle, stream);
        });
    });
}

Expected<void> NcclCommunicator::allReduce(std::string_view what, std::span<const NcclAllReduce> all, void* stream)
{
    if (auto sound = checkCount(all.size()); !sound.ok()) return sound.error().in(named() + ", " + std::string(what));
    return call("put " + std::string(what) + " on its stream", [&](const NcclApi& api, void* handle) {
        return asGroup(api, all, [&](const NcclAllReduce& each) {
            return api.allReduce(each.from, each.to, each.count, typeOf(each.type), each.reduction == NcclReduction::Sum ? ncclSum : ncclAvg, handle, stream);
        });
    });
}

Expected<void> NcclCommunicator::warmUp(std::span<const int> peers, void* twoBytes, void* stream)
{
    std::vector<std::pair<int, int>> pairs;
    for (const int peer : peers) pairs.emplace_back(std::min(rank_, peer), std::max(rank_, peer));
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    auto* bytes = static_cast<std::byte*>(twoBytes);
    for (const auto& [low, high] : pairs) {
        const int peer = low == rank_ ? high : low;
        const auto met = exchange("the first exchange with rank " + std::to_string(peer),
                                  {{NcclPart::Side::Send, peer, bytes, 1}, {NcclPart::Side::Receive, peer, bytes + 1, 1}}, stream);
        if (!met.ok()) return met;
    }
    return {};
}

Expected<void> NcclCommunicator::checkCount(std::size_t parts) const
{
    if (parts > 0 && parts <= kMostParts) return {};
    return Error{std::to_string(parts) + " transfers in one group are not allowed; 1 to " + std::to_string(kMostParts)};
}

Expected<void> NcclCommunicator::checkParts(std::span<const NcclPart> parts) const
{
    if (auto sound = checkCount(parts.size()); !sound.ok()) return sound;
    std::vector<std::size_t> toSelf;
    std::vector<std::size_t> fromSelf;
    for (const NcclPart& part : parts) {
        if (part.peer < 0 || part.peer >= size_)
            return Error{"rank " + std::to_string(part.peer) + " is none of this clique; there are 0 to " + std::to_string(size_ - 1)};
        if (part.peer == rank_) (part.side == NcclPart::Side::Send ? toSelf : fromSelf).push_back(part.bytes);
    }
    if (toSelf != fromSelf)
        return Error{"a transfer of a rank to itself needs both of its sides in one group, of one size"};
    return {};
}

Expected<void> NcclCommunicator::checkThread()
{
    std::thread::id nobody;
    const std::thread::id self = std::this_thread::get_id();
    if (issuer_.compare_exchange_strong(nobody, self) || nobody == self) return {};
    return Error{named() + ": another thread has issued its operations until now, and NCCL takes one thread for each device"};
}

void NcclCommunicator::track(std::string what, std::function<bool()> done)
{
    const std::lock_guard lock(mutex_);
    tracked_.push_back({std::move(what), std::move(done), generation_.load()});
}

void NcclCommunicator::look()
{
    const int generation = generation_.load();
    if (gate_.closed()) return;
    lookAtErrors(generation);
    lookAtProgress(generation);
}

void NcclCommunicator::lookAtErrors(int generation)
{
    if (!gate_.tryEnter()) return; // whoever calls sees it himself
    NcclResult state = kNcclSuccess;
    const NcclResult asked = context_.api.commGetAsyncError(handle_.load(), &state);
    gate_.leave();
    const NcclResult result = asked != kNcclSuccess ? asked : state;
    if (failed(result)) context_.fault.keep(generation, known_, named() + ": " + ncclError(context_.api, "go on", result).message);
}

// No lock is held while CUDA is asked. Only this thread takes anything off, so the first stays where it is.
void NcclCommunicator::lookAtProgress(int generation)
{
    for (;;) {
        const Tracked* first = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!tracked_.empty()) first = &tracked_.front();
        }
        if (first != first_) movedAt_ = context_.clock.now();
        first_ = first;
        if (first == nullptr) return;
        if (first->generation == generation && !first->done()) break;
        const std::lock_guard lock(mutex_);
        tracked_.pop_front();
        first_ = nullptr;
    }
    if (context_.clock.now() - movedAt_ <= context_.patience.transfer) return;
    context_.fault.keep(generation, known_,
                        named() + ": nothing has moved on its communication stream for " + seconds(context_.patience.transfer) + ", it stands at " + first_->what +
                            ": another rank has not come to its side of it, or hangs");
}

NcclResult NcclCommunicator::finalize()
{
    if (!gate_.enter([&] { context_.pause(0); })) return ncclInvalidUsage;
    const NcclResult result = context_.api.commFinalize(handle_.load());
    gate_.leave();
    return result;
}

void NcclCommunicator::destroy()
{
    if (gate_.close([&] {
            context_.pause(0);
            return false;
        }))
        context_.api.commDestroy(handle_.load());
}

void NcclCommunicator::end()
{
    const TimeNs begin = context_.clock.now();
    // After so long a call hangs: to end its communicator is what NCCL offers against that, and then it does not touch it again.
    const bool own = gate_.close([&] {
        context_.pause(0);
        return context_.clock.now() - begin > context_.patience.ending;
    });
    if (own) context_.api.commAbort(handle_.load());
}

Error NcclCommunicator::ended() const
{
    if (const std::optional<NcclFault> fault = context_.fault.first()) return Error{fault->text};
    return Error{named() + " is not connected"};
}

Error NcclCommunicator::fail(const std::string& text) { return Error{context_.fault.keep(generation_.load(), known_, named() + ": " + text)}; }

} // namespace stagecraft::runtime
