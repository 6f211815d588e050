// SPDX-License-Identifier: Apache-2.0
//
// Event simulation, in the order of time where ranks share something, with all that a machine model says: sends that wait, links
// that are shared, copies and collectives beside the computing, ranks that differ, several steps one after the other. The plain
// simulation (timing.h) is for what needs none of this; where both can tell the time, they tell the same.
//
// What runs where:
//   F B I W OVERLAP RECOMPUTE OPTIMIZER   occupy their rank
//   SEND, RECV                            nothing, the sender's copy lane or both ranks, by TransferPlace and SendMode; where
//                                         sends wait, those that are posted together (batch.h) wait as one
//   OFFLOAD, RELOAD                       the rank's copy lane of that direction; the action that needs the RELOAD waits for it
//   UNSHARD, REDUCE_GRAD, all-reduce      the rank's lane of collectives; what uses the weights waits for the UNSHARD, the
//                                         optimizer for the reduction
//
//   Machine machine(schedule, costs);
//   const bool complete = machine.run(3, stop);
//   Trace trace = std::move(machine).trace(); // as far as it came
//
// Preconditions: those of Timing. With sends that wait or occupy, the schedule has SEND and RECV actions. Not thread-safe.
#pragma once

#include "engine/schedule/milestones.h"
#include "engine/schedule/old_versions.h"
#include "engine/simulate/links.h"
#include "engine/simulate/recording.h"

#include <map>
#include <optional>
#include <stop_token>

namespace stagecraft::engine {

class Machine {
public:
    Machine(const Schedule& schedule, const CostTable& costs);

    // Executes the whole schedule so many times, each rank going on to the next step as soon as it may. False when ranks wait for
    // ever, or when it was told to stop.
    bool run(int steps, const std::stop_token& stop);

    traces::Trace trace() &&;

private:
    static constexpr TimeNs kNever = -1;
    static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

    // A forward or a backward: when it was done, and when the neighbour's rank has what it made.
    struct Made {
        TimeNs done = kNever;
        TimeNs arrived = kNever;
        TimeNs offloaded = kNever; // a forward's activations: gone from the rank
        TimeNs reloaded = kNever;  // and back
        traces::SliceRef slice{};
        traces::SliceRef offload{};
        traces::SliceRef reload{};
        bool received = false; // its RECV was reached
    };
    struct Held { // why a rank's clock stands where it does: a slice on whatever lane
        traces::SliceRef by{};
        TimeNs until = 0;
    };
    struct RankState {
        int step = 0;
        std::size_t position = 0;
        std::size_t blockedOn = kNothing; // slot
        TimeNs clock = 0;                 // free from then on
        TimeNs began = 0;                 // the action that runs
        bool running = false;
        // Of the transfers that it has posted together, a bit for each that waits for the other side. When the last was met, and which.
        std::uint32_t open = 0;
        TimeNs met = 0;
        std::size_t metLast = 0;
        bool finished = false; // its list, and waits for its update
        TimeNs offloadFree = 0;
        TimeNs reloadFree = 0;
        TimeNs collectiveFree = 0;
        traces::SliceRef latest{}; // its last computing slice
        bool computed = false;     // has one
        std::optional<Held> held;
        std::optional<traces::SliceRef> lastCollective;
    };
    // The weights of a stage; each of two directions has its own.
    struct Weights {
        TimeNs gathered = kNever; // they are there: UNSHARD
        traces::SliceRef gather{};
        bool sharded = false; // has UNSHARD actions at all
        Bytes gradient = 0;       // held
        std::optional<OldVersions> old; // asynchronous
        bool stepped = false;     // the schedule said when
        TimeNs gradientBegin = 0; // of the last action that adds to the gradient
        TimeNs gradientEnd = kNever;
        traces::SliceRef gradientBy{}; // that action
        TimeNs reduced = kNever;
        traces::SliceRef reduction{};
    };
    struct Completion {
        TimeNs at;
        std::size_t rank;
        bool operator>(const Completion& other) const { return at != other.at ? at > other.at : rank > other.rank; }
    };
    struct Message {
        Rank from{};
        Rank to{};
        Bytes bytes = 0;
        Action send{};
    };

    void openMemory();
    void advance(std::size_t r, TimeNs now);
    bool tryNext(std::size_t r, TimeNs now); // false when the rank waits or runs
    bool tryCompute(std::size_t r, const Action& action);
    bool trySend(std::size_t r, const Action& action, TimeNs now);
    bool tryReceive(std::size_t r, const Action& action);
    void post(std::size_t r, TimeNs now); // the transfers at the rank's position, where sends wait for their receipts
    [[nodiscard]] std::optional<std::size_t> counterpart(std::size_t r, std::size_t position) const; // posted by the other side, its position
    void meet(std::size_t r, std::size_t position, TimeNs until);
    void beside(std::size_t r, const Action& action); // copies and collectives
    void keepForPartner(std::size_t r, int depth, traces::Interval copy, const Action& action, TimeNs at, Bytes change);
    traces::Interval copy(std::size_t r, const Action& action, Bytes bytes, TimeNs at);
    [[nodiscard]] bool isNextOfChannel(std::size_t r, const traces::Work& work) const;
    void occupy(std::size_t r, TimeNs begin, TimeNs end);
    void complete(std::size_t r);
    bool isReady(std::size_t r, const traces::Work& work, TimeNs& begin);
    traces::Interval launch(std::size_t r, const traces::Work& made, const Message& message, TimeNs at);
    void wake(std::size_t r, const traces::Work& made, Rank receiver, TimeNs now);
    [[nodiscard]] std::optional<Message> messageOf(const traces::Work& made) const; // nothing where the neighbour is on the same rank
    traces::SliceRef addSlice(std::size_t r, traces::LaneKind lane, traces::Interval span, const Action& action, int depth = 0);
    void addEdges(std::size_t r, const traces::Work& work, traces::SliceRef slice);
    void addReason(std::size_t r, traces::SliceRef slice, TimeNs queuedUntil = 0);
    void account(std::size_t r, const traces::Work& work, TimeNs begin, TimeNs end);

    // The end of a rank's step (machine_update.cpp).
    void updateWhenReady(std::size_t r, TimeNs now);
    [[nodiscard]] std::vector<std::size_t> updatedTogether(std::size_t r) const;
    void reduceGradients(const std::vector<std::size_t>& group, std::optional<Stage> only = std::nullopt);
    void keepOwnGradient(Rank rank, Weights& weights, TimeNs at);
    void sumTied(Flow flow);
    void update(std::size_t r, const std::optional<Held>& barrier);
    traces::SliceRef addCollective(std::size_t r, traces::Interval span, const Action& action);
    [[nodiscard]] bool reduces() const; // gradients are summed over copies of the weights
    [[nodiscard]] bool ties() const { return costs_.tiedBytes > 0 && !inference_; } // and some between the first and the last stage
    [[nodiscard]] int copies() const { return costs_.machine.replicas * (schedule_.twoDirections() ? 2 : 1); }
    [[nodiscard]] TimeNs ring(Bytes bytes, int passes, int ranks) const;
    [[nodiscard]] Bytes ownPart(Bytes whole, bool divided) const { return divided ? whole / costs_.machine.replicas : whole; }
    [[nodiscard]] bool divides(Sharding level) const { return sharding_ >= level && costs_.machine.replicas > 1; }

    [[nodiscard]] TimeNs duration(std::size_t r, const Action& action) const;
    [[nodiscard]] Made& made(int step, const traces::Work& work) { return made_[static_cast<std::size_t>(step)][slotOf(work)]; }
    [[nodiscard]] std::size_t slotOf(const traces::Work& work) const { return slot(shape_, *gainOf(work)); }
    [[nodiscard]] std::size_t weightsIndex(Flow flow, Stage stage) const
    {
        return index(stage) + (flow == Flow::Up ? costs_.stages.size() : 0);
    }
    [[nodiscard]] Weights& weightsOf(const traces::Work& work) { return weights_[weightsIndex(work.flow, work.stage)]; }
    [[nodiscard]] bool isRecomputed(const traces::Work& work) const
    {
        return !recomputed_.empty() && work.microbatch != traces::kNoMicroBatch &&
               recomputed_[slotOf({ActionKind::Forward, work.flow, work.stage, work.microbatch})];
    }
    // visit(flow, stage, costs, weights) for all that the rank holds.
    template <class Visit>
    void forEachHeld(Rank rank, Visit&& visit)
    {
        for (const Flow flow : schedule_.flows())
            for (std::size_t s = 0; s < costs_.stages.size(); ++s)
                if (schedule_.rankOf(flow, Stage{s}) == rank) visit(flow, Stage{s}, costs_.stages[s], weights_[weightsIndex(flow, Stage{s})]);
    }

    const Schedule& schedule_;
    const CostTable& costs_;
    ScheduleShape shape_;
    Sharding sharding_; // of the table; a schedule that gathers weights divides all
    bool meets_ = false;    // sends wait for their receipts
    bool handsBytes_ = false; // the table knows how many
    bool inference_ = false; // nothing comes back
    const std::vector<int> entry_; // versionsAtEntry()
    bool occupies_ = false; // hand-offs take time of their ranks
    Links links_;
    Recording recording_;
    int steps_ = 1;
    std::vector<std::vector<Made>> made_;   // [step][slot of ForwardDone and BackwardDone]
    std::vector<traces::Interval> stepSpan_; // [step]
    // By sender and receiver, what comes in which order, and how many of it were taken; only where channels keep the order.
    struct Channel {
        std::vector<traces::Work> messages;
        std::size_t taken = 0;
    };
    std::map<std::pair<Rank, Rank>, Channel> channels_;
    std::vector<bool> recomputed_; // by slot of ForwardDone; empty where nothing is
    std::vector<RankState> ranks_;
    std::vector<Weights> weights_;
    // What runs. A heap by time where ranks share something that serves whoever comes first; else the last one goes first, so that a
    // rank goes on as far as it can: what comes out is the same, and its columns stay in the nearest cache.
    bool ordered_ = false;
    std::vector<Completion> running_;
};

} // namespace stagecraft::engine
