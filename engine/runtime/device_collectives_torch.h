// SPDX-License-Identifier: Apache-2.0
//
// The collectives of replicas of which some compute on GPUs. Each rank has a stream for them beside that of its actions; events order the
// two, so nobody's thread waits for a sum. Here are the books: who has given what, which sums are under way, and when they were; how a sum
// is made is told by copied_collectives_torch.h and nccl_collectives_torch.h. The tensors stay where their stage has them, and the rank's
// stream comes to them again after the sum. Private to the runtime.
//
//   collectives.take(turn, step, stage.wholeGradients(turn.parameters), device.mark());   // then the turn is given
//   device.await(collectives.doneAt(turn));                                               // once all have asked for it
#pragma once

#include "engine/runtime/collective_work.h"
#include "engine/runtime/executor_torch.h"
#include "traces/base/expected.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace stagecraft::runtime {

class DeviceCollectives : public CollectiveWork {
public:
    static constexpr std::size_t kAhead = 4; // collectives that a rank asks for before the first of them is done

    explicit DeviceCollectives(const std::vector<Execution>& replicas);
    ~DeviceCollectives() override; // waits: what it holds may be in use

    // On the member's thread; what is given is made at `ready`.
    void take(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark ready);
    // Of what the member gave to last, once all members are through it: when it has what comes of it. None on the CPU.
    [[nodiscard]] DeviceMark doneAt(const Turn& turn) const;

    void work(const Collective& collective, std::size_t member, int round) final;
    void end(const Collective& collective, std::size_t member, const CollectiveSpan& span, const Record& record) final;
    void settle(Rank rank, const Record& record) final;

    // After the last sum of a run that has not ended before. Errors are no more than a note.
    virtual traces::Expected<void> finish() { return {}; }

protected:
    struct Member {
        std::vector<at::Tensor> given; // until it has taken all
        TimeNs givenAt = 0;            // as its thread saw it
        DeviceMark ready;
        std::vector<at::Tensor> part;  // until all have taken it
        DeviceMark partMade;
        DeviceMark begin;
        DeviceMark end;
        [[nodiscard]] TimeNs readyAt() const { return ready ? ready->time() : givenAt; }
    };
    // Once through a collective.
    struct Cycle {
        explicit Cycle(std::size_t count) : members(count), left(count) {}
        traces::Step step{};
        std::vector<Member> members;
        std::size_t given = 0;         // members that have
        std::atomic<std::size_t> left; // members that are not known to be done
    };
    // The member's part of a round is asked for, in the scope of its device and its books; with the last one `end` is set.
    virtual void make(const Collective& collective, std::size_t member, int round, Cycle& cycle) = 0;
    // With the stream for sums.
    [[nodiscard]] RankDevice& deviceOf(Rank rank) const { return *ranks_[traces::index(rank)].device; }
    [[nodiscard]] RankDevice& deviceOf(const Collective& collective, std::size_t member) const { return deviceOf(collective.members()[member].rank); }

private:
    struct Asked {
        const Collective* collective = nullptr;
        std::size_t member = 0;
        CollectiveSpan span{};
        std::shared_ptr<Cycle> cycle;
    };
    struct RankParts {
        RankDevice* device = nullptr; // not owned
        MemoryLedger* ledger = nullptr; // the same
        std::deque<Asked> asked;
    };
    [[nodiscard]] std::shared_ptr<Cycle> cycleOf(const Collective& collective) const;
    void settleFirst(RankParts& rank, const Record& record) const;

    const std::vector<Execution>& replicas_;
    const bool timed_; // below level Events the times stay those of the threads
    std::vector<RankParts> ranks_; // of all replicas
    mutable std::mutex mutex_; // guards what follows, but not what lies in a cycle
    std::map<const Collective*, std::shared_ptr<Cycle>> cycles_; // the last of each
    std::map<std::pair<const Collective*, std::size_t>, DeviceMark> ends_; // by member
};

// Of a run on GPUs, else none. Throws what keeps it from connecting them, where sums go by NCCL.
std::unique_ptr<DeviceCollectives> deviceCollectives(const std::vector<Execution>& replicas);

} // namespace stagecraft::runtime
