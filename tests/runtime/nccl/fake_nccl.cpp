// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/nccl/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>

namespace stagecraft::runtime {

namespace {

constexpr NcclResult kSuccess = 0;
constexpr NcclResult kCuda = 1;
constexpr NcclResult kInvalidArgument = 4;
constexpr NcclResult kInvalidUsage = 5;
constexpr NcclResult kInProgress = 7;

constexpr bool isSum(char kind) { return kind == '+' || kind == '/'; }

FakeNccl* current = nullptr;
thread_local int device = 0;

} // namespace

FakeNccl::FakeNccl()
{
    if (current != nullptr) throw std::logic_error("one fake at a time");
    current = this;
}

FakeNccl::~FakeNccl() { current = nullptr; }

FakeNccl& FakeNccl::one() { return *current; }

FakeNccl::Open& FakeNccl::open()
{
    thread_local Open group;
    return group;
}

NcclApi FakeNccl::api()
{
    NcclApi api;
    api.getVersion = [](int* version) { return *version = 22809, kSuccess; };
    api.getUniqueId = [](NcclId* id) {
        static char number = 0;
        id->bytes[0] = ++number;
        return kSuccess;
    };
    api.commInitRankConfig = [](void** handle, int size, NcclId id, int rank, void*) { return one().init(handle, size, id, rank); };
    api.commFinalize = [](void* handle) { return one().finishOne(handle, "finalize"); };
    api.commDestroy = [](void* handle) { return one().finishOne(handle, "destroy"); };
    api.commAbort = [](void* handle) { return one().finishOne(handle, "abort"); };
    api.commGetAsyncError = [](void* handle, NcclResult* state) { return one().look(handle, state); };
    api.getErrorString = [](NcclResult result) { return result == kCuda ? "unhandled cuda error" : "what NCCL calls it"; };
    api.getLastError = [](void*) -> const char* {
        const std::lock_guard lock(one().mutex_);
        return one().last_.c_str();
    };
    api.groupStart = [] { return ++open().depth, kSuccess; };
    api.groupEnd = [] { return one().end(); };
    api.send = [](const void* buffer, std::size_t count, int, int peer, void* handle, void* stream) {
        return one().add(handle, {.kind = '>', .from = buffer, .count = count, .peer = peer, .stream = stream});
    };
    api.recv = [](void* buffer, std::size_t count, int, int peer, void* handle, void* stream) {
        return one().add(handle, {.kind = '<', .to = buffer, .count = count, .peer = peer, .stream = stream});
    };
    api.allReduce = [](const void* from, void* to, std::size_t count, int, int operation, void* handle, void* stream) {
        return one().add(handle, {.kind = operation == 0 ? '+' : '/', .from = from, .to = to, .count = count, .stream = stream});
    };
    return api;
}

Expected<void> FakeNccl::useDevice(int number)
{
    device = number;
    return {};
}

void FakeNccl::takeDeviceFrom(std::function<int()> current)
{
    const std::lock_guard lock(mutex_);
    currentDevice_ = std::move(current);
}

void FakeNccl::tellExchanges(std::function<Over(const Side&)> tell)
{
    const std::lock_guard lock(mutex_);
    tell_ = std::move(tell);
}

void FakeNccl::tellMeetings(std::function<void(const std::vector<void*>&)> tell)
{
    const std::lock_guard lock(mutex_);
    tellMet_ = std::move(tell);
}

void FakeNccl::answerInProgress(int looks)
{
    const std::lock_guard lock(mutex_);
    looks_ = looks;
}

void FakeNccl::fail(int rank, NcclResult state)
{
    const std::lock_guard lock(mutex_);
    for (const auto& each : communicators_)
        if (each->rank == rank && !each->ended) each->state = state;
}

void FakeNccl::failCall(std::string call, NcclResult result)
{
    const std::lock_guard lock(mutex_);
    failing_[std::move(call)] = result;
}

void FakeNccl::hang(int rank)
{
    const std::lock_guard lock(mutex_);
    hanging_.insert(rank);
}

void FakeNccl::takeGpusAway()
{
    const std::lock_guard lock(mutex_);
    gpus_ = false;
}

std::vector<std::string> FakeNccl::log() const
{
    const std::lock_guard lock(mutex_);
    return log_;
}

std::vector<std::string> FakeNccl::misuse() const
{
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all = misuse_;
    if (open().depth != 0) all.push_back("a group was left open");
    return all;
}

std::size_t FakeNccl::carriedOut(int rank) const
{
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& each : communicators_)
        if (each->rank == rank) count = each->carriedOut; // of the last that it had
    return count;
}

bool FakeNccl::hangs() const
{
    const std::lock_guard lock(mutex_);
    return hangs_;
}

NcclResult FakeNccl::refusal(const std::string& call)
{
    const auto failing = failing_.find(call);
    if (failing == failing_.end()) return kSuccess;
    const NcclResult result = failing->second;
    failing_.erase(failing);
    last_ = call + " was told to fail";
    return result;
}

NcclResult FakeNccl::init(void** handle, int size, const NcclId& id, int rank)
{
    const std::lock_guard lock(mutex_);
    if (!gpus_) {
        last_ = "Cuda failure 'no CUDA-capable device is detected'";
        return kCuda;
    }
    if (const NcclResult refused = refusal("init"); refused != kSuccess) return refused;
    auto made = std::make_unique<Communicator>();
    made->rank = rank;
    made->size = size;
    made->device = currentDevice_ ? currentDevice_() : device;
    made->id = id;
    *handle = made.get();
    open().began = true;
    log_.push_back("init " + std::to_string(rank) + "/" + std::to_string(size));
    for (const auto& each : communicators_) {
        if (each->ended || each->id != id || each->device != made->device) continue;
        last_ = "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " + std::to_string(each->rank);
        made->state = each->state = kInvalidUsage;
    }
    communicators_.push_back(std::move(made));
    return open().depth > 0 ? kSuccess : kInProgress;
}

FakeNccl::Communicator* FakeNccl::alive(void* handle, const char* call)
{
    auto* communicator = static_cast<Communicator*>(handle);
    if (communicator != nullptr && !communicator->ended) return communicator;
    misuse_.push_back(std::string(call) + " with an ended communicator");
    return nullptr;
}

NcclResult FakeNccl::add(void* handle, Part part)
{
    const std::lock_guard lock(mutex_);
    Communicator* communicator = alive(handle, "an operation");
    if (communicator == nullptr) return kInvalidArgument;
    if (communicator->state == kInProgress) misuse_.push_back("an operation while another is under way");
    if (const NcclResult refused = refusal(part.kind == '>' ? "send" : part.kind == '<' ? "recv" : "allReduce"); refused != kSuccess) return refused;
    if (open().depth == 0) misuse_.push_back("an operation outside of a group");
    open().parts.emplace_back(communicator, part);
    return kSuccess;
}

NcclResult FakeNccl::end()
{
    std::unique_lock lock(mutex_);
    Open& group = open();
    if (group.depth <= 0) {
        misuse_.push_back("a group was ended that was not begun");
        return kInvalidUsage;
    }
    if (--group.depth > 0) return kSuccess;
    const bool began = std::exchange(group.began, false);
    const auto parts = std::exchange(group.parts, {});
    if (const NcclResult refused = refusal("groupEnd"); refused != kSuccess) return refused;
    std::map<Communicator*, std::vector<Part>> byCommunicator;
    for (const auto& [communicator, part] : parts) byCommunicator[communicator].push_back(part);
    for (auto& [communicator, own] : byCommunicator) {
        const bool sums = isSum(own.front().kind);
        std::string text = (sums ? "sum " : "group ") + std::to_string(communicator->rank) + ":";
        for (const Part& part : own) text += (sums ? "" : std::string(" ") + part.kind + std::to_string(part.peer)) + " " + std::to_string(part.count);
        log_.push_back(text);
        communicator->groups.push_back(own);
        issued_[communicator->device].push_back(communicator);
        if (tell_) communicator->overs.push_back(tellExchange(own));
        if (communicator->state == kSuccess) communicator->state = kInProgress; // an error stays
        communicator->looks = looks_;
        if (hanging_.erase(communicator->rank) > 0) {
            hangs_ = true;
            released_.wait(lock, [&ended = communicator->ended] { return ended; });
            hangs_ = false;
            return kInvalidUsage;
        }
    }
    work();
    return began || !byCommunicator.empty() ? kInProgress : kSuccess;
}

NcclResult FakeNccl::look(void* handle, NcclResult* state)
{
    const std::lock_guard lock(mutex_);
    Communicator* communicator = alive(handle, "a look");
    if (communicator == nullptr) return kInvalidArgument;
    communicator->joined = communicator->joined || std::count_if(communicators_.begin(), communicators_.end(), [&](const auto& each) {
                                                       return !each->ended && each->id == communicator->id;
                                                   }) == communicator->size;
    if (communicator->state == kInProgress && communicator->joined && --communicator->looks < 0 && connected(*communicator)) communicator->state = kSuccess;
    *state = communicator->state;
    return kSuccess;
}

NcclResult FakeNccl::finishOne(void* handle, const char* what)
{
    const std::lock_guard lock(mutex_);
    Communicator* communicator = alive(handle, what);
    if (communicator == nullptr) return kInvalidArgument;
    if (const NcclResult refused = refusal(what); refused != kSuccess) return refused;
    log_.push_back(std::string(what) + " " + std::to_string(communicator->rank));
    if (std::string_view(what) == "finalize") {
        communicator->state = kInProgress;
        communicator->looks = looks_;
        return kInProgress;
    }
    communicator->ended = true;
    std::erase(issued_[communicator->device], communicator);
    for (const Over& over : communicator->overs) over();
    communicator->overs.clear();
    released_.notify_all();
    work();
    return kSuccess;
}

bool FakeNccl::isNext(const Communicator& communicator) const
{
    const auto before = issued_.find(communicator.device);
    return before != issued_.end() && !before->second.empty() && before->second.front() == &communicator;
}

// Carries out what can be.
void FakeNccl::work()
{
    const auto some = [&] {
        return std::any_of(communicators_.begin(), communicators_.end(), [&](const auto& each) { return !each->ended && carryOut(*each); });
    };
    while (some()) {}
}

FakeNccl::Communicator* FakeNccl::other(const Communicator& communicator, int rank) const
{
    for (const auto& each : communicators_)
        if (!each->ended && each->id == communicator.id && each->rank == rank) return each.get();
    return nullptr;
}

// Whether all that it must be carried out with is what its device has next.
bool FakeNccl::meets(const Communicator& communicator, std::set<Communicator*>& all) const
{
    if (communicator.groups.empty() || !isNext(communicator)) return false;
    const std::vector<Part>& group = communicator.groups.front();
    const auto sides = [](const std::vector<Part>& parts, char kind, int peer) {
        return std::count_if(parts.begin(), parts.end(), [&](const Part& part) { return part.kind == kind && part.peer == peer; });
    };
    const bool collective = isSum(group.front().kind);
    for (int rank = 0; rank < communicator.size; ++rank) {
        const auto out = sides(group, '>', rank);
        const auto in = sides(group, '<', rank);
        if (!collective && out + in == 0) continue;
        Communicator* peer = other(communicator, rank);
        if (peer == nullptr || peer->groups.empty()) return false;
        const std::vector<Part>& theirs = peer->groups.front();
        if (collective ? theirs.front().kind != group.front().kind : sides(theirs, '<', communicator.rank) != out || sides(theirs, '>', communicator.rank) != in)
            return false;
        if (all.insert(peer).second && !meets(*peer, all)) return false;
    }
    return true;
}

bool FakeNccl::carryOut(Communicator& communicator)
{
    std::set<Communicator*> all{&communicator};
    if (!meets(communicator, all)) return false;
    if (isSum(communicator.groups.front().front().kind)) sum(all);
    else for (Communicator* each : all) move(*each);
    if (tellMet_) {
        std::vector<void*> streams;
        for (const Communicator* each : all) streams.push_back(each->groups.front().front().stream);
        tellMet_(streams);
    }
    for (Communicator* each : all) {
        each->groups.pop_front();
        issued_[each->device].pop_front();
        if (!each->overs.empty()) {
            each->overs.front()();
            each->overs.pop_front();
        }
        ++each->carriedOut;
    }
    return true;
}

FakeNccl::Over FakeNccl::tellExchange(const std::vector<Part>& group) const
{
    Side side;
    for (const Part& part : group) {
        side.stream = part.stream;
        if (part.kind == '>') side.reads.push_back(part.from);
        if (part.kind == '<' || isSum(part.kind)) side.writes.push_back(part.to);
        if (isSum(part.kind) && part.from != part.to) side.reads.push_back(part.from);
    }
    return tell_(side);
}

void FakeNccl::move(Communicator& communicator)
{
    std::map<int, std::size_t> taken; // of each peer's sends
    for (const Part& part : communicator.groups.front()) {
        if (part.kind != '<') continue;
        std::size_t number = taken[part.peer]++;
        for (const Part& sent : other(communicator, part.peer)->groups.front()) {
            if (sent.kind != '>' || sent.peer != communicator.rank || number-- != 0) continue;
            connected_.emplace(communicator.id, std::minmax(communicator.rank, part.peer));
            std::memcpy(part.to, sent.from, std::min(sent.count, part.count));
            break;
        }
    }
}

// From the last rank on: nobody may count on NCCL's order.
void FakeNccl::sum(const std::set<Communicator*>& all)
{
    std::vector<Communicator*> members(all.begin(), all.end());
    std::ranges::sort(members, std::greater{}, &Communicator::rank);
    const std::vector<Part>& first = members.front()->groups.front();
    const auto fits = [&](const Communicator* each) {
        return std::ranges::equal(each->groups.front(), first, [](const Part& one, const Part& other) { return one.kind == other.kind && one.count == other.count; });
    };
    if (!std::ranges::all_of(members, fits)) {
        misuse_.push_back("sums of other lengths than those of the other ranks");
        return;
    }
    for (std::size_t k = 0; k < first.size(); ++k)
        for (std::size_t i = 0; i < first[k].count; ++i) {
            float sum = 0;
            for (const Communicator* each : members) sum += static_cast<const float*>(each->groups.front()[k].from)[i];
            if (first[k].kind == '/') sum /= static_cast<float>(members.size());
            for (const Communicator* each : members) static_cast<float*>(each->groups.front()[k].to)[i] = sum;
        }
}

// NCCL connects two ranks at their first exchange, and until both are there the call is under way.
bool FakeNccl::connected(const Communicator& communicator) const
{
    return std::all_of(communicator.groups.begin(), communicator.groups.end(), [&](const std::vector<Part>& group) {
        return std::all_of(group.begin(), group.end(), [&](const Part& part) {
            return (part.kind != '>' && part.kind != '<') || connected_.contains({communicator.id, std::minmax(communicator.rank, part.peer)});
        });
    });
}

} // namespace stagecraft::runtime
