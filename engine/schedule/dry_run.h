// SPDX-License-Identifier: Apache-2.0
//
// Executes a schedule without time: every rank takes its actions in order, each as soon as what it needs is there; of transfers that
// are posted together (batch.h), each as soon as it can. Finds whether the whole can be executed at all, and in which circle the ranks
// wait if not.
//
//   DryRun run(schedule, SendMode::Buffered);
//   run.execute();
//   if (!run.complete()) report(run.circle());
//
// Precondition: stages and micro-batches of all actions lie within the schedule's shape.
#pragma once

#include "engine/schedule/batch.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/validate.h"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace stagecraft::engine {

class DryRun {
public:
    DryRun(const Schedule& schedule, SendMode send);

    // `executed` is called for each action in the order of the dry run.
    void execute(const std::function<void(Rank, const Action&)>& executed = {});
    [[nodiscard]] bool complete() const;
    // Ranks that wait for each other, each for the next, the last for the first; where ranks wait for something that never
    // comes, the chain that ends there. Empty when complete.
    [[nodiscard]] std::vector<WaitingRank> circle() const;

private:
    struct Obstacle {
        Milestone need;
        Rank rank{};
        std::string why = {}; // see WaitingRank
    };
    // A rank stands before a batch, mostly of one action, of which it has executed some.
    struct Place {
        std::size_t position = 0; // of the batch
        std::size_t end = 0;
        std::uint32_t executed = 0; // a bit for each of the batch
    };
    static_assert(kMaxBatch <= 32);

    [[nodiscard]] const Action& at(std::size_t rank, std::size_t position) const { return schedule_.order[rank][position]; }
    [[nodiscard]] bool done(std::size_t rank) const { return places_[rank].position == schedule_.order[rank].size(); }
    // The action belongs to the batch before which the rank stands, and is not executed yet.
    [[nodiscard]] bool posted(std::size_t rank, std::size_t position) const;
    [[nodiscard]] std::optional<std::size_t> findPosted(std::size_t rank, const Action& action) const;
    [[nodiscard]] std::optional<Obstacle> obstacle(std::size_t rank, std::size_t position) const;
    [[nodiscard]] std::optional<Obstacle> milestoneObstacle(std::size_t rank, std::size_t position) const;
    // Of a transfer, where sends wait for their receiver: the other side has not come.
    [[nodiscard]] std::optional<Obstacle> rendezvousObstacle(std::size_t rank, std::size_t position) const;
    // Of a RECV, where messages are queues: another message that is ahead of it, or another RECV of its batch that is posted first.
    [[nodiscard]] std::optional<Obstacle> channelObstacle(std::size_t rank, std::size_t position) const;
    void executeBuffered(const std::function<void(Rank, const Action&)>& executed);
    void executeRendezvous(const std::function<void(Rank, const Action&)>& executed);
    // Calls reached(slot) for each milestone that the action brings about; goes on behind a batch that is done.
    template <class Reached>
    void finish(std::size_t rank, std::size_t position, Reached&& reached);
    void passMessage(std::size_t rank, const Action& action); // puts what it sends on its channel, or takes what it receives off
    void standBefore(std::size_t rank, std::size_t position);

    const Schedule& schedule_;
    ScheduleShape shape_;
    SendMode send_;
    std::vector<Place> places_; // by rank
    std::vector<bool> reached_;
    std::map<std::pair<Rank, Rank>, std::deque<traces::Work>> channels_; // SENDs not yet received, by sender and receiver
};

} // namespace stagecraft::engine
