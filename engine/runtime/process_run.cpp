// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/process_run.h"

#include "engine/transport/clock_alignment.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace stagecraft::runtime {

using namespace engine;
using Json = nlohmann::json;

namespace {

constexpr int kQuestions = 64; // for the time; the quickest answer counts
constexpr std::array kHeard{MailKind::End,    MailKind::Pause, MailKind::Resume, MailKind::Trouble,
                            MailKind::Rested, MailKind::Ping,  MailKind::Pong,   MailKind::Clock};

} // namespace

ProcessRun::ProcessRun(ProcessGroup& group, const Parts& parts) : group_(group), parts_(parts), rested_(static_cast<std::size_t>(group.size()))
{
    parts_.control.onEnding([this] {
        parts_.trouble.cancel(); // whoever waits for mail looks at the control, a stage that is held or slowed down does not
        tellEnd();
    });
    const Member& first = group_.member(0);
    const Member& self = group_.member(rank());
    if (self.clock == first.clock)
        parts_.recorder.post(traces::ClockRecord{{.rank = traces::Rank{rank()}, .host = self.host, .at = parts_.clock.now(), .offset = 0, .error = 0}});
    for (const MailKind kind : kHeard) group_.office().subscribe(kind, this);
    group_.onLoss([this](int lost) {
        FailureMessage failure;
        failure.text = group_.lossOf(lost).message;
        parts_.control.fail(failure);
    });
}

ProcessRun::~ProcessRun()
{
    group_.onLoss({});
    for (const MailKind kind : kHeard) group_.office().subscribe(kind, nullptr);
    parts_.control.onEnding({});
}

void ProcessRun::pause()
{
    int number = 0;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(pausing_, true)) return;
        rested_.assign(rested_.size(), false);
        number = ++pause_;
    }
    group_.office().sendToAll(MailKind::Pause, std::to_string(number));
    pauseHere(number);
}

// Where the gate had no time to open since the last pause, the control has nothing new to tell: this process rests as before.
void ProcessRun::pauseHere(int number)
{
    parts_.control.pause();
    {
        const std::lock_guard lock(mutex_);
        pause_ = number;
        if (!atRest_) return;
    }
    tellRested(number);
}

void ProcessRun::resume()
{
    {
        const std::lock_guard lock(mutex_);
        pausing_ = false;
    }
    group_.office().sendToAll(MailKind::Resume, "");
    parts_.control.resume();
}

void ProcessRun::trouble(const StageTrouble& trouble)
{
    group_.office().sendToAll(MailKind::Trouble, writeCommand({.kind = CommandKind::Trouble, .plan = {}, .trouble = trouble}));
    parts_.trouble.set(trouble);
}

void ProcessRun::rested()
{
    int number = 0;
    {
        const std::lock_guard lock(mutex_);
        atRest_ = true;
        number = pause_;
    }
    tellRested(number);
}

void ProcessRun::wentOn()
{
    const std::lock_guard lock(mutex_);
    atRest_ = false;
}

void ProcessRun::tellRested(int number)
{
    if (rank() == 0) noteRested(0, number);
    else group_.office().send(0, MailKind::Rested, std::to_string(number));
}

void ProcessRun::noteRested(int rank, int number)
{
    const std::lock_guard lock(mutex_);
    if (!pausing_ || number != pause_) return;
    rested_[static_cast<std::size_t>(rank)] = true;
    // under the lock, so that no resume() comes in between: whoever is told that all have paused is told later that they run
    if (std::find(rested_.begin(), rested_.end(), false) == rested_.end()) parts_.paused();
}

// The others hear of it from the first to whom it happened, whoever that is.
void ProcessRun::tellEnd()
{
    if (endTold_.load()) return;
    std::string text;
    if (std::optional<FailureMessage> failure = parts_.control.failure()) {
        if (!failure->rank && group_.lost() < 0) failure->rank = rank();
        text = writeMessage(*failure);
    }
    group_.office().sendToAll(MailKind::End, text);
}

void ProcessRun::close()
{
    parts_.control.onEnding({}); // waits for one that is being told
    endTold_.store(true);
}

void ProcessRun::endAs(const std::string& text, int from)
{
    endTold_.store(true);
    if (text.empty()) return parts_.control.stop();
    Expected<SessionMessage> message = readMessage(text);
    if (message.ok() && std::holds_alternative<FailureMessage>(message.value())) return parts_.control.fail(std::get<FailureMessage>(message.value()));
    FailureMessage failure;
    failure.text = "the run failed there";
    failure.rank = from;
    parts_.control.fail(failure);
}

void ProcessRun::arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>&)
{
    switch (kind) {
    case MailKind::End: return endAs(text, from);
    case MailKind::Pause: return pauseHere(std::stoi(text));
    case MailKind::Resume: return parts_.control.resume();
    case MailKind::Trouble:
        if (const Expected<SessionCommand> command = readCommand(text); command.ok()) parts_.trouble.set(command.value().trouble);
        return;
    case MailKind::Rested: return noteRested(from, std::stoi(text));
    case MailKind::Ping: return group_.office().send(from, MailKind::Pong, std::to_string(parts_.clock.now()));
    case MailKind::Pong: {
        const std::lock_guard lock(mutex_);
        answer_ = std::stoll(text);
        return;
    }
    case MailKind::Clock: return takeClock(text);
    default: return;
    }
}

void ProcessRun::takeClock(const std::string& text)
{
    const Json json = Json::parse(text);
    parts_.recorder.post(traces::ClockRecord{{.rank = traces::Rank{rank()},
                                              .host = group_.member(rank()).host,
                                              .at = json.at("at").get<TimeNs>(),
                                              .offset = json.at("offset").get<TimeNs>(),
                                              .error = json.at("error").get<TimeNs>()}});
}

void ProcessRun::alignClocks()
{
    for (int r = 1; r < group_.size(); ++r) {
        if (group_.member(r).clock == group_.member(0).clock) continue;
        ClockAlignment alignment;
        for (int i = 0; i < kQuestions && !ending(); ++i) {
            std::optional<TimeNs> theirs;
            const TimeNs asked = parts_.clock.now();
            TimeNs heard = asked;
            group_.office().send(r, MailKind::Ping, "");
            group_.office().waitUntil([&] {
                const std::lock_guard lock(mutex_);
                theirs = std::exchange(answer_, std::nullopt);
                heard = parts_.clock.now();
                return theirs || ending();
            });
            if (theirs) alignment.add({.asked = asked, .theirs = *theirs, .heard = heard});
        }
        if (ending()) return;
        const Json reading{{"at", alignment.theirs()}, {"offset", alignment.offset()}, {"error", alignment.error()}};
        group_.office().send(r, MailKind::Clock, reading.dump());
    }
}

namespace {

std::span<const std::byte> bytesOf(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

} // namespace

std::vector<std::string> ProcessRun::gather(std::string own)
{
    if (rank() != 0) {
        const auto kept = std::make_shared<const std::string>(std::move(own));
        group_.office().send(0, MailKind::Part, "", {bytesOf(*kept)}, kept);
        group_.office().waitUntil([&] { return group_.office().allSent() || group_.lost() >= 0; });
        return {};
    }
    std::vector<std::string> parts{std::move(own)};
    for (int r = 1; r < group_.size(); ++r) {
        std::optional<Mail> part;
        group_.office().waitUntil([&] { return (part = group_.office().find(MailKind::Part, r)).has_value() || group_.lost() >= 0; });
        if (!part) return {};
        parts.push_back(std::move(part->bodies.front()));
    }
    return parts;
}

} // namespace stagecraft::runtime
