// SPDX-License-Identifier: Apache-2.0
//
// The collectives of replicas of which some compute on GPUs. Each rank has a stream for them beside that of its actions; events order the
// two, so nobody's thread waits for a sum. A tensor is written by its own rank alone, which makes two rounds of a collective:
//
//   1  waits for what all have given    makes its part in memory of its own: the sum of that part of all copies, in the order of the
//                                       members, or a copy of what it has of the weights
//   2  waits for round 1 of all         takes the parts of the others over into its own tensors
//
// As much goes between two GPUs as in a ring, and the sums are those of the CPU (collective.h) but for where they are made. What a round
// has made is held until all have taken it; the tensors themselves stay where their stage has them, and the rank's stream comes to them
// again after its second round. Private to the runtime.
//
//   collectives.take(turn, step, stage.wholeGradients(turn.parameters), device.mark());   // then the turn is given
//   device.await(collectives.doneAt(turn));                                               // once all have asked for it
#pragma once

#include "engine/runtime/collective_work.h"
#include "engine/runtime/executor_torch.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace stagecraft::runtime {

class DeviceCollectives final : public CollectiveWork {
public:
    static constexpr std::size_t kAhead = 4; // collectives that a rank asks for before the first of them is done

    explicit DeviceCollectives(const std::vector<Execution>& replicas);
    ~DeviceCollectives() override; // waits: what it holds may be in use

    // On the member's thread; what is given is made at `ready`.
    void take(const Turn& turn, traces::Step step, std::vector<at::Tensor> values, DeviceMark ready);
    // Of what the member gave to last, once all members are through it: when it has what comes of it. None on the CPU.
    [[nodiscard]] DeviceMark doneAt(const Turn& turn) const;

    [[nodiscard]] int rounds() const override { return 2; }
    void work(const Collective& collective, std::size_t member, int round) override;
    void end(const Collective& collective, std::size_t member, const CollectiveSpan& span, const Record& record) override;
    void settle(Rank rank, const Record& record) override;

private:
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
    void makePart(const Collective& collective, std::size_t member, Cycle& cycle);
    void takeParts(const Collective& collective, std::size_t member, Cycle& cycle);
    void settleFirst(RankParts& rank, const Record& record) const;

    const std::vector<Execution>& replicas_;
    const bool timed_; // below level Events the times stay those of the threads
    std::vector<RankParts> ranks_; // of all replicas
    mutable std::mutex mutex_; // guards what follows, but not what lies in a cycle
    std::map<const Collective*, std::shared_ptr<Cycle>> cycles_; // the last of each
    std::map<std::pair<const Collective*, std::size_t>, DeviceMark> ends_; // by member
};

// Of a run on GPUs, else none.
std::unique_ptr<DeviceCollectives> deviceCollectives(const std::vector<Execution>& replicas);

} // namespace stagecraft::runtime
