// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/post_office.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <pthread.h>
#include <sys/prctl.h>

namespace stagecraft::runtime {

namespace {

constexpr std::chrono::microseconds kNap{50};

// The kernel may let a sleep of a thread last 50 us longer than asked for, to save wake-ups; here that is the whole sleep.
void sleepExactly() { ::prctl(PR_SET_TIMERSLACK, 1000UL); }

std::span<const std::byte> bytesOf(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

template <class Number>
void append(std::string& out, Number number)
{
    out.append(reinterpret_cast<const char*>(&number), sizeof number); // all hosts of a run have one byte order
}

template <class Number>
Number take(std::string_view& bytes)
{
    Number number{};
    std::memcpy(&number, bytes.data(), sizeof number);
    bytes.remove_prefix(sizeof number);
    return number;
}

} // namespace

std::shared_ptr<void> PostOffice::Receiver::prepare(int, std::string_view, std::span<const std::size_t> sizes, std::vector<std::span<std::byte>>& room)
{
    auto bodies = std::make_shared<std::vector<std::string>>();
    for (const std::size_t size : sizes) bodies->emplace_back(size, '\0');
    for (std::string& body : *bodies) room.push_back(std::as_writable_bytes(std::span(body.data(), body.size())));
    return bodies;
}

void PostOffice::Receiver::refused(int, const std::exception_ptr& error) { std::rethrow_exception(error); }

void PostOffice::Waiting::pause()
{
    if (spins_ < patience_.spins) {
        ++spins_;
        return spinPause();
    }
    const auto now = std::chrono::steady_clock::now();
    if (!yieldsUntil_) {
        yieldsUntil_ = now + patience_.yielding;
        sleepExactly();
    }
    if (now < *yieldsUntil_) std::this_thread::yield();
    else std::this_thread::sleep_for(kNap);
}

PostOffice::PostOffice(MessagePort& port, const Patience& patience, Rest rest)
    : port_(port), patience_(patience), rest_(std::move(rest)), incoming_(static_cast<std::size_t>(port.size()))
{
    if (!rest_) rest_ = [](std::chrono::microseconds time, Health) { std::this_thread::sleep_for(time); };
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    pthread_setname_np(thread_.native_handle(), "messages");
}

PostOffice::~PostOffice() = default;

void PostOffice::work(const std::stop_token& stop)
{
    sleepExactly();
    while (!stop.stop_requested()) {
        look();
        rest_(busy_.load(std::memory_order_relaxed) ? kBusyPeriod : kPeriod, breakdown().empty() ? Health::Well : Health::BrokenDown);
    }
}

void PostOffice::send(int to, MailKind kind, std::string_view text, const std::vector<std::span<const std::byte>>& bodies, std::shared_ptr<const void> keep)
{
    std::string head;
    append(head, static_cast<std::uint8_t>(kind));
    append(head, static_cast<std::uint32_t>(bodies.size()));
    for (const auto& body : bodies) append(head, static_cast<std::uint64_t>(body.size()));
    head += text;

    const std::lock_guard lock(mutex_);
    Outgoing& out = outgoing_.emplace_back(Outgoing{std::move(head), {}, std::move(keep)});
    if (!breakdown_.empty()) return; // and it stays: nobody knows what the port still reads
    try {
        out.tickets.push_back(port_.send(to, MessagePort::Channel::Heads, bytesOf(out.head)));
        for (const auto& body : bodies)
            if (!body.empty()) out.tickets.push_back(port_.send(to, MessagePort::Channel::Bodies, body));
    } catch (const std::exception& error) {
        breakdown_ = error.what();
    }
}

void PostOffice::sendToAll(MailKind kind, std::string_view text)
{
    for (int r = 0; r < port_.size(); ++r)
        if (r != port_.rank()) send(r, kind, text);
}

void PostOffice::subscribe(MailKind kind, Receiver* receiver)
{
    const std::lock_guard delivering(delivering_);
    std::deque<Mail> before;
    {
        const std::lock_guard lock(mutex_);
        receivers_[static_cast<std::size_t>(kind)] = receiver;
        if (receiver == nullptr) return;
        for (auto mail = kept_.begin(); mail != kept_.end();) {
            if (mail->kind != kind) {
                ++mail;
                continue;
            }
            before.push_back(std::move(*mail));
            mail = kept_.erase(mail);
        }
    }
    for (Mail& mail : before) receiver->arrived(mail.from, kind, mail.text, std::make_shared<std::vector<std::string>>(std::move(mail.bodies)));
}

std::optional<Mail> PostOffice::find(MailKind kind, int from)
{
    const std::lock_guard lock(mutex_);
    const auto mail = std::find_if(kept_.begin(), kept_.end(), [&](const Mail& m) { return m.kind == kind && (from < 0 || m.from == from); });
    if (mail == kept_.end()) return std::nullopt;
    std::optional<Mail> found(std::move(*mail));
    kept_.erase(mail);
    return found;
}

std::optional<Mail> PostOffice::find(MailKind kind) { return find(kind, -1); }

bool PostOffice::allSent()
{
    const std::lock_guard lock(mutex_);
    return outgoing_.empty();
}

void PostOffice::look()
{
    {
        const std::lock_guard lock(mutex_);
        try {
            if (breakdown_.empty()) exchange();
        } catch (const std::exception& error) {
            breakdown_ = error.what();
        }
    }
    deliver();
}

std::string PostOffice::breakdown()
{
    const std::lock_guard lock(mutex_);
    return breakdown_;
}

bool PostOffice::arrived(std::vector<MessagePort::Ticket>& tickets)
{
    std::erase_if(tickets, [&](MessagePort::Ticket ticket) { return port_.done(ticket); });
    return tickets.empty();
}

void PostOffice::exchange()
{
    std::erase_if(outgoing_, [&](Outgoing& out) { return arrived(out.tickets); });
    // A head may be announced long before its bytes are here, and they never come where its sender dies in between.
    while (const std::optional<MessagePort::Arriving> head = port_.arriving()) {
        Incoming& in = incoming_[static_cast<std::size_t>(head->from)].emplace_back();
        in.mail.from = head->from;
        in.head.resize(head->bytes);
        in.tickets = {port_.receive(head->from, MessagePort::Channel::Heads, std::as_writable_bytes(std::span(in.head.data(), in.head.size())))};
    }
    for (std::list<Incoming>& ofOne : incoming_) advance(ofOne);
    const bool receives = std::any_of(incoming_.begin(), incoming_.end(), [](const std::list<Incoming>& ofOne) { return !ofOne.empty(); });
    busy_.store(receives || !outgoing_.empty(), std::memory_order_relaxed);
}

// The port matches messages in their order, but they are done in any: a small one may be whole before a large one that was sent first.
//
//   sent    A: head, 1 GB body    B: head    C: head, body
//   opened  A                     B          C              in this order, as bodies are told apart by their order alone
//   ready   .                     .          .              until A is whole; then all that are
void PostOffice::advance(std::list<Incoming>& ofOne)
{
    bool first = true; // all that was sent before is ready
    for (auto in = ofOne.begin(); in != ofOne.end();) {
        if (!in->opened) {
            if (!arrived(in->tickets)) return;
            open(*in);
        }
        const auto next = std::next(in);
        first = first && arrived(in->tickets);
        if (first) ready_.splice(ready_.end(), ofOne, in);
        in = next;
    }
}

void PostOffice::open(Incoming& in)
{
    std::string_view rest = in.head;
    in.opened = true;
    in.mail.kind = static_cast<MailKind>(take<std::uint8_t>(rest));
    std::vector<std::size_t> sizes(take<std::uint32_t>(rest));
    for (std::size_t& size : sizes) size = take<std::uint64_t>(rest);
    in.mail.text = rest;

    std::vector<std::span<std::byte>> room;
    Receiver* receiver = receivers_[static_cast<std::size_t>(in.mail.kind)];
    if (receiver != nullptr && !sizes.empty()) {
        try {
            in.prepared = receiver->prepare(in.mail.from, in.mail.text, sizes, room);
        } catch (...) {
            in.refusal = std::current_exception();
        }
    }
    if (in.prepared == nullptr) { // nobody wants it yet, or there is no room: it has to be taken all the same
        room.clear();
        for (const std::size_t size : sizes) in.mail.bodies.emplace_back(size, '\0');
        for (std::string& body : in.mail.bodies) room.push_back(std::as_writable_bytes(std::span(body.data(), body.size())));
    }
    for (const auto& body : room)
        if (!body.empty()) in.tickets.push_back(port_.receive(in.mail.from, MessagePort::Channel::Bodies, body));
}

void PostOffice::deliver()
{
    // Who delivers now finds what another thread has just brought, or the next look does.
    const std::unique_lock delivering(delivering_, std::try_to_lock);
    if (!delivering) return;
    for (;;) {
        Incoming in;
        Receiver* receiver = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (ready_.empty()) return;
            in = std::move(ready_.front()); // all its bytes are there
            ready_.pop_front();
            receiver = receivers_[static_cast<std::size_t>(in.mail.kind)];
            if (receiver == nullptr) {
                kept_.push_back(std::move(in.mail));
                continue;
            }
        }
        if (in.refusal) receiver->refused(in.mail.from, in.refusal);
        else receiver->arrived(in.mail.from, in.mail.kind, in.mail.text, in.prepared);
    }
}

} // namespace stagecraft::runtime
