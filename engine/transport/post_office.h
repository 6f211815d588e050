// SPDX-License-Identifier: Apache-2.0
//
// Mail between the processes of a run: a text and any number of bodies of bytes. Sending never waits and keeps the bodies until they
// are gone, so no schedule can deadlock here that is legal, whatever the order in which ranks send and take. Whoever waits for mail
// looks for it himself, which costs no waking; while nobody waits, a thread of the office looks every now and then, so that
// what is under way gets on while ranks compute. What one process sends to another is handed over in the order in which it was sent,
// whatever its kind and its size: between two of different senders there is no order.
//
//   office.subscribe(MailKind::Boundary, receiver);
//   office.send(1, MailKind::Boundary, text, {bytesOf(tensor)}, keep);      // any thread
//   office.waitUntil([&] { return box.full(); });
//
// Mail of a kind that nobody has subscribed to is kept: find() looks for it.
#pragma once

#include "engine/transport/message_port.h"
#include "engine/transport/spin_wait.h"

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace stagecraft::runtime {

enum class MailKind : std::uint8_t {
    Hello,     // who one is
    Agreement, // how one fared, and what all do
    Boundary,  // an activation or its gradient
    Form,      // of one that goes another way
    Ready,     // to connect that way
    Gradients, // of one of two copies of a stage
    Sum,       // of those of replicas: what one adds up, and what comes of it
    Norms,     // of gradients, so far
    Report,    // a rank has come to the end of a step
    Checked,   // tensors that the check compares
    State,     // of a stage, for a checkpoint
    Go,        // the next step
    End,       // the run ends
    Pause,
    Resume,
    Trouble, // on purpose, for a stage
    Rested, // a rank has paused
    Ping,   // what time is it?
    Pong,
    Clock, // how a rank's clock stands to rank 0's
    Part,  // of the trace
};
inline constexpr std::size_t kMailKinds = static_cast<std::size_t>(MailKind::Part) + 1;

struct Mail {
    int from = 0;
    MailKind kind = MailKind::Hello;
    std::string text;
    std::vector<std::string> bodies;
};

class PostOffice {
public:
    // How often the office's own thread looks: a twentieth of this is what it costs the core at most.
    static constexpr std::chrono::microseconds kPeriod{200};
    static constexpr std::chrono::microseconds kBusyPeriod{20}; // while something is on its way here

    // Takes mail on whatever thread looks. None of these may wait for mail.
    class Receiver {
    public:
        virtual ~Receiver() = default;
        // Room for the bodies of something that arrives: one for each size. What is returned is handed to arrived(). It may send nothing.
        virtual std::shared_ptr<void> prepare(int from, std::string_view text, std::span<const std::size_t> sizes,
                                              std::vector<std::span<std::byte>>& room);
        virtual void arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>& prepared) = 0;
        // There was no room, for `error`; what came is lost.
        virtual void refused(int from, const std::exception_ptr& error);
    };

    enum class Health : std::uint8_t { Well, BrokenDown };
    using Rest = std::function<void(std::chrono::microseconds, Health)>;
    // `port` is used by the office alone until it is gone. `rest` is how its thread lets so much time pass; by default it sleeps.
    PostOffice(MessagePort& port, const Patience& patience, Rest rest = {});
    ~PostOffice();
    PostOffice(const PostOffice&) = delete;
    PostOffice& operator=(const PostOffice&) = delete;

    void send(int to, MailKind kind, std::string_view text, const std::vector<std::span<const std::byte>>& bodies = {},
              std::shared_ptr<const void> keep = {});
    void sendToAll(MailKind kind, std::string_view text); // but oneself

    // Null: nobody any more; returns when a call that is under way is over. What came before a subscription is handed over at once.
    void subscribe(MailKind kind, Receiver* receiver);
    // The first that was kept.
    std::optional<Mail> find(MailKind kind);
    std::optional<Mail> find(MailKind kind, int from);

    void look();
    // Looks until `ready` says so.
    template <class Ready>
    void waitUntil(Ready&& ready)
    {
        Waiting waiting(patience_);
        while (!ready()) {
            look();
            if (ready()) return;
            waiting.pause();
        }
    }
    [[nodiscard]] bool allSent(); // as of the last look
    // Why nothing is sent and received any more: the port failed, as it may where a process at its other end is gone. Empty: all is well.
    [[nodiscard]] std::string breakdown();

private:
    // Spins, then lets others run, then sleeps in short pieces.
    class Waiting {
    public:
        explicit Waiting(const Patience& patience) : patience_(patience) {}
        void pause();

    private:
        const Patience& patience_;
        int spins_ = 0;
        std::optional<std::chrono::steady_clock::time_point> yieldsUntil_;
    };
    struct Outgoing {
        std::string head;
        std::vector<MessagePort::Ticket> tickets;
        std::shared_ptr<const void> keep;
    };
    struct Incoming {
        std::string head;
        bool opened = false; // the head is here, and its bodies are asked for
        Mail mail;
        std::shared_ptr<void> prepared;
        std::exception_ptr refusal;
        std::vector<MessagePort::Ticket> tickets; // of the head, then of the bodies
    };

    void exchange();
    void advance(std::list<Incoming>& ofOne);
    void open(Incoming& in);
    bool arrived(std::vector<MessagePort::Ticket>& tickets);
    void deliver();
    void work(const std::stop_token& stop);

    MessagePort& port_;
    Patience patience_;
    Rest rest_;
    std::mutex mutex_; // guards port_ and all below but delivering_
    // Lists, as the port reads and writes what lies in their elements: a short string moves its bytes when it is moved.
    std::list<Outgoing> outgoing_;
    std::vector<std::list<Incoming>> incoming_; // by sender, in its order
    std::list<Incoming> ready_;
    std::deque<Mail> kept_;
    std::string breakdown_;
    std::array<Receiver*, kMailKinds> receivers_{};
    std::mutex delivering_; // held while a receiver is called: mail is handed over in its order
    std::atomic<bool> busy_{false};
    std::jthread thread_; // last: it uses the others
};

} // namespace stagecraft::runtime
