// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan in several "processes", which are threads of the test and share nothing but messages.
//
//   const TeamOutcome team = runTeam(plan, {.faults = {{1, fault}}});
//   EXPECT_EQ(team.ranks[0].last, engine::SessionState::Finished);
#pragma once

#include "engine/transport/process_group.h"
#include "tests/runtime/local_ports.h"
#include "tests/runtime/run_plan.h"
#include "tests/runtime/tcp_ports.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stagecraft::runtime {

// A clock of another host: it shows another time, and goes at another speed.
class OtherClock final : public Clock {
public:
    OtherClock(traces::TimeNs ahead, traces::TimeNs speed) : ahead_(ahead), speed_(speed) {}
    [[nodiscard]] traces::TimeNs now() const noexcept override { return start_ + ahead_ + (monotonicClock().now() - start_) * speed_; }

private:
    traces::TimeNs start_ = monotonicClock().now();
    traces::TimeNs ahead_;
    traces::TimeNs speed_;
};

struct TeamOptions {
    std::map<int, InjectedFault> faults = {}; // by rank
    std::map<int, traces::TimeNs> ahead = {};         // by rank: on a host of its own, whose clock is so much ahead
    std::map<int, traces::TimeNs> speed = {};         // by rank: of its clock
    LatePort::IsLate isLate = {};             // whose messages overtake each other
    std::map<int, std::size_t> ringCapacities = {}; // by rank
    NetKind net = NetKind::Memory;
    const DeviceSource* devices = nullptr; // the GPUs of the one host, for all
    const NcclSource* nccl = nullptr;      // the same
    std::map<int, CuptiSession*> cupti = {}; // by rank; the others record no kernels
    const Clock* clock = nullptr;          // of the one host
    std::map<int, std::chrono::nanoseconds> devicePatience = {}; // by rank; the others have all that a run has
    bool givenUp = false; // the run of a process will be, and its threads go on: what they use outlives the team
    std::function<void(engine::Session&, Outcome&)> lead = followToEnd; // what rank 0 does once it has started
};

// A lead: between steps it pauses and goes on, so many times.
inline std::function<void(engine::Session&, Outcome&)> pausesGoesOnAndStops(int rounds)
{
    return [rounds](engine::Session& session, Outcome& outcome) {
        for (int i = 0; i < rounds; ++i) {
            const std::size_t steps = outcome.trace.steps().size();
            follow(session, outcome, [&] { return outcome.trace.steps().size() > steps; });
            session.pause();
            follow(session, outcome, [&] { return session.state() == engine::SessionState::Paused; });
            session.resume();
            follow(session, outcome, [&] { return session.state() == engine::SessionState::Running; });
        }
        session.stop();
        followToEnd(session, outcome);
    };
}

struct TeamOutcome {
    std::vector<Outcome> ranks;
    std::vector<std::string> refusals;
    std::vector<std::string> spent; // why the process takes no further run on GPUs
};

// Kept for good.
struct KeptTeam {
    std::unique_ptr<Net> net;
    std::vector<std::unique_ptr<ProcessGroup>> groups;
};
inline void keep(KeptTeam team)
{
    static auto& all = *new std::vector<KeptTeam>;
    all.push_back(std::move(team));
}

inline TeamOutcome runTeam(const engine::Plan& plan, const TeamOptions& options = {}, int size = 0)
{
    if (size == 0) size = plan.machine.replicas * plan.pipeline.ranks;
    const auto count = static_cast<std::size_t>(size);
    TeamOutcome team{std::vector<Outcome>(count), std::vector<std::string>(count), std::vector<std::string>(count)};
    std::unique_ptr<Net> net = makeNet(options.net, size);
    std::vector<std::unique_ptr<ProcessGroup>> groups(count); // which nobody leaves
    std::vector<std::jthread> processes;
    for (int r = 0; r < size; ++r)
        processes.emplace_back([&, r] {
            const auto index = static_cast<std::size_t>(r);
            const auto ahead = options.ahead.find(r);
            const bool elsewhere = ahead != options.ahead.end();
            const auto speed = options.speed.find(r);
            const OtherClock clock(elsewhere ? ahead->second : 0, speed != options.speed.end() ? speed->second : 1);
            const std::string host = elsewhere ? "host" + std::to_string(r) : "here";
            std::unique_ptr<MessagePort> port = net->port(r);
            if (options.isLate) port = std::make_unique<LatePort>(std::move(port), options.isLate);
            auto group = ProcessGroup::join(std::move(port), {.host = host, .clock = host}, size).value();
            LocalSessionOptions session{.clock = options.clock != nullptr ? options.clock : &clock, .devices = options.devices, .nccl = options.nccl, .group = group.get()};
            if (const auto cupti = options.cupti.find(r); cupti != options.cupti.end()) session.cupti = cupti->second;
            else session.profilers = {"in a test there is none"};
            if (const auto fault = options.faults.find(r); fault != options.faults.end()) session.fault = fault->second;
            if (const auto patience = options.devicePatience.find(r); patience != options.devicePatience.end()) session.devicePatience = patience->second;
            if (const auto capacity = options.ringCapacities.find(r); capacity != options.ringCapacities.end()) session.ringCapacity = capacity->second;
            {
                const std::unique_ptr<engine::Session> run = makeLocalSession(session);
                const engine::Expected<void> started = run->start(plan);
                if (!started.ok()) team.refusals[index] = started.error().message;
                else if (r == 0) options.lead(*run, team.ranks[index]);
                else followToEnd(*run, team.ranks[index]);
                team.spent[index] = run->spent();
            }
            if (options.givenUp) groups[index] = std::move(group);
            else group->leave();
        });
    processes.clear();
    if (options.givenUp) keep({std::move(net), std::move(groups)});
    return team;
}

} // namespace stagecraft::runtime
