// SPDX-License-Identifier: Apache-2.0
//
// Executes a schedule without time: every rank takes its actions in order, each as soon as what it needs is there. Finds
// whether the whole can be executed at all, and in which circle the ranks wait if not.
//
//   DryRun run(schedule, SendMode::Buffered);
//   run.execute();
//   if (!run.complete()) report(run.circle());
//
// Precondition: stages and micro-batches of all actions lie within the schedule's shape.
#pragma once

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
    [[nodiscard]] std::optional<Obstacle> obstacle(std::size_t rank) const;
    [[nodiscard]] std::optional<Obstacle> rendezvousObstacle(std::size_t rank) const;
    // Of a RECV, where messages are queues: another message that is ahead of it. The rank can never take that one first.
    [[nodiscard]] std::optional<Obstacle> channelObstacle(std::size_t rank) const;
    [[nodiscard]] const Action& next(std::size_t rank) const { return schedule_.order[rank][position_[rank]]; }
    [[nodiscard]] bool done(std::size_t rank) const { return position_[rank] == schedule_.order[rank].size(); }
    void executeBuffered(const std::function<void(Rank, const Action&)>& executed);
    void executeRendezvous(const std::function<void(Rank, const Action&)>& executed);
    // Calls reached(slot) for each milestone that the rank's next action brings about.
    template <class Reached>
    void advance(std::size_t rank, Reached&& reached);
    void passMessage(std::size_t rank); // puts what the rank's next action sends on its channel, or takes what it receives off

    const Schedule& schedule_;
    ScheduleShape shape_;
    SendMode send_;
    std::vector<std::size_t> position_;
    std::vector<bool> reached_;
    std::map<std::pair<Rank, Rank>, std::deque<traces::Work>> channels_; // SENDs not yet received, by sender and receiver
};

} // namespace stagecraft::engine
