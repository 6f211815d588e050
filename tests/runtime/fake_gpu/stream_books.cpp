// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/fake_gpu/stream_books.h"

#include <algorithm>
#include <utility>

namespace stagecraft::test {

namespace {

// A thread's waits for streams are all the time that it takes. One of an earlier run goes on from the one that is current now.
struct HostClock {
    TimeNs time = 0;
    int run = -1;
};
thread_local HostClock hostClock;
std::atomic<int> runs{0};

TimeNs& timeOfThread()
{
    if (hostClock.run != runs.load()) hostClock = {StreamBooks::kStart, runs.load()};
    return hostClock.time;
}

void mergeInto(VectorClock& clock, const VectorClock& other)
{
    clock.resize(std::max(clock.size(), other.size()));
    for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool includes(const VectorClock& clock, int stream, std::uint64_t tick)
{
    const auto i = static_cast<std::size_t>(stream);
    return i < clock.size() && clock[i] >= tick;
}

} // namespace

void StreamBooks::reset(const Faults& faults)
{
    const std::lock_guard lock(mutex_);
    ++runs;
    faults_ = faults;
    hanging_ = true;
    for (Stream& stream : streams_) {
        stream.now = {.clock = {}, .device = stream.device};
        stream.waiting.clear();
    }
    host_.clear();
    races_.clear();
    operations_ = hostWaits_ = 0;
    exchanges_.clear();
    hangs_ = false;
    for (auto& [address, block] : blocks_) { // what the process keeps, as factors of layers
        block.writer = -1;
        block.read.clear();
    }
}

int StreamBooks::newStream(int device)
{
    const std::lock_guard lock(mutex_);
    std::vector<int>& pool = pools_[device];
    const std::size_t turn = turns_[device]++;
    if (turn < kPool) {
        pool.push_back(static_cast<int>(streams_.size()));
        streams_.push_back({.device = device, .now = {.clock = {}, .device = device}});
    }
    return pool[turn % kPool];
}

int StreamBooks::deviceOf(int stream) const
{
    const std::lock_guard lock(mutex_);
    return streams_[static_cast<std::size_t>(stream)].device;
}

// Everything that touched it before and may not be over.
void StreamBooks::meet(const Block& block, const VectorClock& now, const std::string& what, bool writes)
{
    const auto check = [&](int stream, const Use& use, const char* did) {
        if (!includes(now, stream, use.tick)) races_.insert(what + " while " + use.name + " on stream " + std::to_string(stream) + " " + did + " it");
    };
    if (block.writer >= 0) check(block.writer, block.written, "writes");
    if (!writes) return;
    for (const auto& [stream, use] : block.read) check(stream, use, "reads");
}

traces::Interval StreamBooks::operate(int stream, const std::string& name, const std::vector<Access>& accesses, TimeNs cost)
{
    const std::lock_guard lock(mutex_);
    Mark& now = streams_[static_cast<std::size_t>(stream)].now;
    now.hangs = now.hangs || (operations_ >= faults_.hangsFrom && mayHang(now.device));
    return note(stream, name, accesses, cost);
}

traces::Interval StreamBooks::note(int stream, const std::string& name, const std::vector<Access>& accesses, TimeNs cost)
{
    Stream& on = streams_[static_cast<std::size_t>(stream)];
    on.now.clock.resize(streams_.size());
    mergeInto(on.now.clock, host_);
    const std::uint64_t tick = ++on.now.clock[static_cast<std::size_t>(stream)];
    const TimeNs begin = std::max(ended(on.now), timeOfThread());
    on.now.time = begin + cost;
    ++operations_;
    for (const Access& access : accesses) {
        const auto found = blocks_.find(access.block);
        if (found == blocks_.end()) continue; // the host's
        Block& block = found->second;
        meet(block, on.now.clock, name + " on stream " + std::to_string(stream) + (access.writes ? " writes memory" : " reads memory"), access.writes);
        if (access.writes) {
            block.writer = stream;
            block.written = {tick, name};
            block.read.clear();
        } else {
            block.read[stream] = {tick, name};
        }
    }
    return {begin, on.now.time};
}

std::shared_ptr<Exchange> StreamBooks::exchange(int stream, const std::vector<Access>& blocks)
{
    auto exchange = std::make_shared<Exchange>();
    const std::lock_guard lock(mutex_);
    exchange->asked = note(stream, "an exchange", blocks, 0).begin;
    Stream& on = streams_[static_cast<std::size_t>(stream)];
    exchange->before = std::exchange(on.now.exchange, exchange);
    on.waiting.push_back(exchange);
    on.now.hangs = on.now.hangs || (exchanges_[on.device]++ >= faults_.hangsFromExchange && mayHang(on.device));
    return exchange;
}

std::vector<traces::Interval> StreamBooks::meet(const std::vector<int>& streams, TimeNs cost)
{
    const std::lock_guard lock(mutex_);
    std::vector<Exchange*> all;
    TimeNs met = 0;
    for (const int stream : streams) {
        Stream& on = streams_[static_cast<std::size_t>(stream)];
        Exchange& first = *on.waiting.front();
        first.span.begin = std::max(first.asked, first.before ? first.before->span.end : 0);
        first.before.reset();
        met = std::max(met, first.span.begin);
        all.push_back(&first);
    }
    std::vector<traces::Interval> spans;
    for (Exchange* each : all) {
        each->span.end = met + cost;
        spans.push_back(each->span);
    }
    for (const int stream : streams) streams_[static_cast<std::size_t>(stream)].waiting.pop_front();
    return spans;
}

void StreamBooks::hasCome(Exchange& exchange)
{
    const std::lock_guard lock(mutex_);
    exchange.come.store(true);
    for (Stream& stream : streams_) std::erase_if(stream.waiting, [&](const std::shared_ptr<Exchange>& each) { return each.get() == &exchange; }); // one that was ended
    released_.notify_all();
}

TimeNs StreamBooks::timeOf(const Mark& mark) const
{
    const std::lock_guard lock(mutex_);
    return ended(mark);
}

Mark StreamBooks::record(int stream)
{
    const std::lock_guard lock(mutex_);
    Mark& now = streams_[static_cast<std::size_t>(stream)].now;
    now.clock.resize(streams_.size());
    mergeInto(now.clock, host_);
    now.time = std::max(now.time, timeOfThread());
    return now;
}

void StreamBooks::block(int stream, const Mark& mark)
{
    const std::lock_guard lock(mutex_);
    Mark& now = streams_[static_cast<std::size_t>(stream)].now;
    // what it is to wait for is not there yet, and operations here compute at once
    if (isUnderWay(mark)) races_.insert("stream " + std::to_string(stream) + " waits for what another rank has not sent");
    mergeInto(now.clock, mark.clock);
    now.time = std::max(now.time, ended(mark));
    now.hangs = now.hangs || mark.hangs;
}

void StreamBooks::waitOnHost(const Mark& mark)
{
    std::unique_lock lock(mutex_);
    hangs_ = hangs_ || (mark.hangs && hanging_);
    released_.wait(lock, [&] { return (!mark.hangs || !hanging_) && !isUnderWay(mark); });
    mergeInto(host_, mark.clock);
    timeOfThread() = std::max(timeOfThread(), ended(mark));
    ++hostWaits_;
}

// What is not waited for is not over yet: the latest that a GPU may be.
bool StreamBooks::reached(const Mark& mark)
{
    const std::lock_guard lock(mutex_);
    if (isUnderWay(mark)) return false;
    for (std::size_t i = 0; i < mark.clock.size(); ++i)
        if (!includes(host_, static_cast<int>(i), mark.clock[i])) return false;
    return true;
}

void StreamBooks::take(int stream, const void* block, std::size_t bytes)
{
    const std::lock_guard lock(mutex_);
    blocks_[block] = {.stream = stream, .bytes = bytes, .written = {}, .read = {}};
}

// The stream that took it may write to it from now on.
void StreamBooks::letGo(const void* address)
{
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    VectorClock now = streams_[static_cast<std::size_t>(found->second.stream)].now.clock;
    mergeInto(now, host_);
    meet(found->second, now, "memory of stream " + std::to_string(found->second.stream) + " is let go of", true);
    blocks_.erase(found);
}

const void* StreamBooks::blockOf(const void* address)
{
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return nullptr;
    --after;
    const auto* begin = static_cast<const std::byte*>(after->first);
    return static_cast<const std::byte*>(address) < begin + after->second.bytes ? after->first : nullptr;
}

TimeNs StreamBooks::hostTime() const { return timeOfThread(); }

std::vector<std::string> StreamBooks::races() const
{
    const std::lock_guard lock(mutex_);
    return {races_.begin(), races_.end()};
}

// The one that fails is not told: as on a device, whoever asks or waits for something after it is.
bool StreamBooks::failed() const
{
    const std::lock_guard lock(mutex_);
    return operations_ > faults_.failsFrom;
}

void StreamBooks::release()
{
    const std::lock_guard lock(mutex_);
    hanging_ = false;
    released_.notify_all();
}

bool StreamBooks::hangs() const
{
    const std::lock_guard lock(mutex_);
    return hangs_;
}

int StreamBooks::exchanges(int device) const
{
    const std::lock_guard lock(mutex_);
    const auto found = exchanges_.find(device);
    return found != exchanges_.end() ? found->second : 0;
}

std::size_t StreamBooks::held(int device) const
{
    const std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& [address, block] : blocks_)
        if (streams_[static_cast<std::size_t>(block.stream)].device == device) bytes += block.bytes;
    return bytes;
}

int StreamBooks::operations() const
{
    const std::lock_guard lock(mutex_);
    return operations_;
}

int StreamBooks::hostWaits() const
{
    const std::lock_guard lock(mutex_);
    return hostWaits_;
}

int StreamBooks::blocks() const
{
    const std::lock_guard lock(mutex_);
    return static_cast<int>(blocks_.size());
}

} // namespace stagecraft::test
