// SPDX-License-Identifier: Apache-2.0
//
// The processes of a run, one for each rank: who they are, mail between them, and the news that one is no more. Made before a plan is
// read, so that all do the same; one run at a time uses it.
//
//   Expected<std::unique_ptr<ProcessGroup>> group = ProcessGroup::join(std::move(port), {.host = hostName(), .clock = clockName()});
//   Expected<std::string> plan = group->fromFirst("the plan", ownPlan);         // what rank 0 has, or why it has none
//   if (auto all = group->agree("the start", ownStart); !all.ok()) return all.error();    // "rank 2: ..."
//   group->leave();
#pragma once

#include "engine/transport/life_line.h"
#include "engine/transport/message_port.h"
#include "engine/transport/post_office.h"
#include "traces/base/expected.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::runtime {

using traces::Error;
using traces::Expected;

// Who started the processes: for messages that say what to do.
enum class Launcher : std::uint8_t { Mpirun, Torchrun };

struct Member {
    std::string host;
    std::string clock; // two of the same name read one clock
};

class ProcessGroup {
public:
    // `together`: processes on this host, which share its cores. Waits for all to join.
    static Expected<std::unique_ptr<ProcessGroup>> join(std::unique_ptr<MessagePort> port, const Member& self, int together,
                                                        Launcher launcher = Launcher::Mpirun);
    ~ProcessGroup();
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    [[nodiscard]] int rank() const { return port_->rank(); }
    [[nodiscard]] int size() const { return port_->size(); }
    [[nodiscard]] Launcher launcher() const { return launcher_; }
    [[nodiscard]] const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] bool onOneHost() const;
    [[nodiscard]] int placeOnHost() const; // of this process among those of its host, in the order of their ranks
    [[nodiscard]] PostOffice& office() { return *office_; }

    // One that is no more; none: -1. Where messages fail and nobody knows whose end it is: size().
    [[nodiscard]] int lost() const { return lost_.load(); }
    [[nodiscard]] Error lossOf(int rank) const; // "rank 2 died: ..."
    // Called once on the office's thread when one is lost, at once where one is; empty: no more, and no call is under way.
    void onLoss(std::function<void(int rank)> tell);

    // All call each of these, in the same order. Should one be elsewhere after all, then what is asked `about` differs, and all get an error
    // instead of waiting for each other.
    Expected<void> agree(std::string_view about, const Expected<void>& own);                    // the error of the first rank that has one, with its name
    Expected<std::vector<std::string>> exchange(std::string_view about, const Expected<std::string>& own); // the same, and what each has told, by rank
    Expected<std::string> fromFirst(std::string_view about, const Expected<std::string>& own); // rank 0's own
    void leave(); // all that was sent has arrived, and all leave; not where one is lost

private:
    ProcessGroup(std::unique_ptr<MessagePort> port, int together, Launcher launcher);
    void meet(const Member& self);
    void noteLoss(int rank);
    void lookAfterOthers(std::chrono::microseconds time, PostOffice::Health health);
    std::optional<Mail> await(MailKind kind, int from); // nothing where one is lost

    std::unique_ptr<MessagePort> port_;
    Launcher launcher_;
    std::vector<Member> members_; // by rank
    std::unique_ptr<LifeLine> line_;
    std::atomic<LifeLine*> watched_{nullptr};
    std::atomic<int> lost_{-1};
    std::mutex mutex_; // guards tell_, and is held while it is called
    std::function<void(int)> tell_;
    std::unique_ptr<PostOffice> office_; // last: its thread uses the others
};

} // namespace stagecraft::runtime
