// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/process_sums_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/replica_part.h"
#include "engine/runtime/run_messages.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

namespace {

std::span<std::byte> bytesOf(const at::Tensor& tensor) { return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()}; }

} // namespace

ProcessSums::ProcessSums(const Execution& run, ProcessRun& all, const HandoffPlace& place, Rank rank)
    : run_(run), all_(all), place_(place), rank_(rank), second_(run.plan.machine.replicas * run.schedule.ranks + rank.value),
      device_(run.pipeline.sumDevice(Rank{rank.value % run.schedule.ranks}))
{
    static_assert(std::is_trivially_copyable_v<Head>);
    std::map<Stage, std::int32_t> buckets;
    for (const auto& collective : run.sums->collectives()) {
        const auto own = std::ranges::find(collective->members(), rank, &Collective::Member::rank);
        if (own == collective->members().end()) continue;
        const Stage stage = collective->kind().stage;
        auto sum = std::make_unique<Sum>();
        sum->collective = collective.get();
        sum->head = {.stage = stage.value, .bucket = buckets[stage]++, .member = static_cast<std::int32_t>(own - collective->members().begin())};
        sum->parts.resize(collective->members().size());
        byCollective_[collective.get()] = sum.get();
        sums_[{sum->head.stage, sum->head.bucket}] = std::move(sum);
    }
    all_.group().office().subscribe(MailKind::Sum, this);
}

ProcessSums::~ProcessSums() { all_.group().office().subscribe(MailKind::Sum, nullptr); }

void ProcessSums::start()
{
    thread_ = std::jthread([this](const std::stop_token& stop) {
        serve(stop);
        run_.control.rest(second_);
        run_.control.leave();
    });
    pthread_setname_np(thread_.native_handle(), ("sums " + std::to_string(rank_.value)).c_str());
}

void ProcessSums::stop()
{
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
}

void ProcessSums::give(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark made)
{
    Sum& sum = *byCollective_.at(turn.collective);
    {
        const std::lock_guard lock(mutex_);
        sum.step = step;
        sum.values = std::move(values);
        sum.made = std::move(made);
        sum.givenAt = run_.clock.now();
        ++sum.given;
        ask(Next::Send, sum);
    }
    changed_.notify_one();
}

void ProcessSums::ask(Next next, Sum& sum) { jobs_.push_back({next, &sum}); }

bool ProcessSums::done(const std::vector<Turn>& turns)
{
    return std::ranges::all_of(turns, [&](const Turn& turn) {
        const Sum& sum = *byCollective_.at(turn.collective);
        return sum.given > 0 && sum.given == sum.ended.load();
    });
}

std::optional<TimeNs> ProcessSums::wait(const std::vector<Turn>& turns)
{
    all_.group().office().waitUntil([&] { return done(turns) || all_.ending(); });
    if (all_.ending()) return std::nullopt;
    TimeNs since = 0;
    for (const Turn& turn : turns) since = std::max(since, byCollective_.at(turn.collective)->end);
    return since;
}

void ProcessSums::serve(const std::stop_token& stop)
{
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            if (!changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) return;
            job = jobs_.front();
            jobs_.pop_front();
        }
        if (!run_.control.enter(second_)) return;
        try {
            work(job);
        } catch (...) {
            failed(*job.sum, std::current_exception());
            return;
        }
        run_.control.rest(second_);
    }
}

void ProcessSums::work(const Job& job)
{
    device_.useHere(); // this thread is for sums alone
    const at::NoGradGuard noGrad;
    const DeviceWatch::Wait wait(device_.isCpu() ? nullptr : run_.watch, rank_, job.sum->step, job.sum->collective->action(job.sum->member()),
                                 DeviceWatch::Thread::Sums);
    const WorkScope mark(run_.marks, job.sum->step, job.sum->collective->action(job.sum->member()), run_.replica);
    switch (job.next) {
    case Next::Send: return sendParts(*job.sum);
    case Next::Add: return addUp(*job.sum);
    case Next::End: return end(*job.sum);
    }
}

std::vector<std::span<std::byte>> ProcessSums::partsIn(const Sum& sum, std::size_t ofMember)
{
    std::vector<std::span<std::byte>> parts;
    for (const at::Tensor& tensor : sum.onHost) {
        const PartRange part = partOf(tensor.numel(), static_cast<int>(ofMember), static_cast<int>(sum.collective->members().size()));
        if (part.size() > 0) parts.push_back(bytesOf(tensor).subspan(static_cast<std::size_t>(part.begin) * sizeof(float), static_cast<std::size_t>(part.size()) * sizeof(float)));
    }
    return parts;
}

void ProcessSums::sendTo(const Sum& sum, std::size_t member, Phase phase, const std::vector<std::span<const std::byte>>& bodies, std::shared_ptr<const void> keep)
{
    Head head = sum.head;
    head.phase = phase;
    const Rank to = sum.collective->members()[member].rank;
    all_.group().office().send(to.value, MailKind::Sum, std::string_view(reinterpret_cast<const char*>(&head), sizeof head), bodies, std::move(keep));
}

// A part is read by its sending until its sum comes back, and is written by that alone.
void ProcessSums::sendParts(Sum& sum)
{
    given_.push_back(&sum);
    sum.onHost = sum.values;
    if (!device_.isCpu()) {
        const RankDevice::Scope here = device_.enter();
        const AllocationScope nobody({});
        device_.await(sum.made);
        for (at::Tensor& each : sum.onHost) each = each.cpu();
        if (run_.plan.run.tracing >= traces::TraceLevel::Events && !sum.onHost.empty()) sum.givenAt = sum.made->time(); // not when it was asked for
    }
    const auto kept = std::make_shared<const std::vector<at::Tensor>>(sum.onHost);
    for (std::size_t m = 0; m < sum.collective->members().size(); ++m) {
        if (m == sum.member()) continue;
        const std::vector<std::span<std::byte>> parts = partsIn(sum, m);
        sendTo(sum, m, Phase::Part, {parts.begin(), parts.end()}, kept);
    }
    const std::lock_guard lock(mutex_);
    sum.readable = true;
    if (sum.partsCome == sum.others()) ask(Next::Add, sum);
}

// Into memory of its own, which stays until it is sent: what the stage has is an update's to change by then.
void ProcessSums::addUp(Sum& sum)
{
    sum.begin = run_.clock.now();
    const std::vector<std::span<std::byte>> own = partsIn(sum, sum.member());
    const std::size_t first = sum.member() == 0 ? 1 : 0; // of the others
    const auto floats = [](std::span<std::byte> bytes) { return reinterpret_cast<float*>(bytes.data()); };
    for (std::size_t t = 0; t < own.size(); ++t) {
        std::vector<float*> sources;
        for (std::size_t m = 0; m < sum.parts.size(); ++m) sources.push_back(floats(m == sum.member() ? own[t] : bytesOf(sum.parts[m][t])));
        sumInto(sources, {sources[first], floats(own[t])}, static_cast<std::int64_t>(own[t].size() / sizeof(float)));
    }
    const auto kept = std::make_shared<const std::vector<at::Tensor>>(std::move(sum.parts[first]));
    for (std::vector<at::Tensor>& each : sum.parts) each.clear();
    std::vector<std::span<const std::byte>> bodies;
    for (const at::Tensor& each : *kept) bodies.emplace_back(bytesOf(each));
    for (std::size_t m = 0; m < sum.parts.size(); ++m)
        if (m != sum.member()) sendTo(sum, m, Phase::Sum, bodies, kept);
    const std::lock_guard lock(mutex_);
    sum.partsCome = 0;
    sum.summed = true;
    if (sum.sumsCome == sum.others()) ask(Next::End, sum);
}

void ProcessSums::end(Sum& sum)
{
    sum.whole = true;
    for (; !given_.empty() && given_.front()->whole; given_.pop_front()) record(*given_.front());
}

void ProcessSums::record(Sum& sum)
{
    if (!device_.isCpu()) {
        const RankDevice::Scope here = device_.enter();
        for (std::size_t t = 0; t < sum.values.size(); ++t) sum.values[t].copy_(sum.onHost[t]);
        sum.back = device_.mark();
        device_.drain(); // the copies on the host go
    }
    sum.begin = std::max(sum.begin, lastEnd_); // several are under way at once, and lie one after the other on their lane
    sum.end = lastEnd_ = run_.clock.now();
    sum.values.clear();
    sum.onHost.clear();
    sum.made = {};
    sum.readable = sum.summed = sum.whole = false;
    sum.sumsCome = 0;
    const CollectiveSpan span{.step = sum.step, .begin = sum.begin, .end = sum.end, .ready = std::min(sum.givenAt, sum.begin), .last = rank_};
    run_.recorder.collectiveRing(rank_).push(collectiveEvent(*run_.sums, *sum.collective, sum.member(), span));
    sum.ended.fetch_add(1);
}

// A sum comes from one who has this member's part: where it goes is there by then.
std::shared_ptr<void> ProcessSums::prepare(int, std::string_view text, std::span<const std::size_t> sizes, std::vector<std::span<std::byte>>& room)
{
    Head head;
    std::memcpy(&head, text.data(), sizeof head);
    if (head.phase == Phase::Sum) {
        room = partsIn(sumOf(head), static_cast<std::size_t>(head.member));
        return std::make_shared<std::vector<at::Tensor>>(sumOf(head).onHost);
    }
    const AllocationScope scope({.ledger = place_.device.isCpu() ? &place_.ledger : nullptr, .memory = MemoryClass::Buffers});
    auto parts = std::make_shared<std::vector<at::Tensor>>();
    for (const std::size_t bytes : sizes) {
        parts->push_back(at::empty({static_cast<std::int64_t>(bytes / sizeof(float))}));
        room.push_back(bytesOf(parts->back()));
    }
    return parts;
}

void ProcessSums::arrived(int, MailKind, const std::string& text, const std::shared_ptr<void>& prepared)
{
    Head head;
    std::memcpy(&head, text.data(), sizeof head);
    {
        const std::lock_guard lock(mutex_);
        Sum& sum = sumOf(head);
        if (head.phase == Phase::Part) {
            if (prepared != nullptr) sum.parts[static_cast<std::size_t>(head.member)] = std::move(*static_cast<std::vector<at::Tensor>*>(prepared.get())); // none of no bytes
            if (++sum.partsCome == sum.others() && sum.readable) ask(Next::Add, sum);
        } else if (++sum.sumsCome == sum.others() && sum.summed) {
            ask(Next::End, sum);
        }
    }
    changed_.notify_one();
}

void ProcessSums::refused(int from, const std::exception_ptr& error)
{
    engine::FailureMessage failure = describeFailure("receiving from rank " + std::to_string(from), error);
    failure.rank = all_.rank();
    place_.control.fail(std::move(failure));
}

void ProcessSums::failed(const Sum& sum, const std::exception_ptr& error)
{
    place_.control.fail(describeFailure(sum.collective->action(sum.member()), sum.step, rank_, error));
}

} // namespace stagecraft::runtime
