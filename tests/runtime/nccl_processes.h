// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan in several "processes" (team.h), each with a GPU that is not there, that hand over by an NCCL that is not there (nccl_on_gpus.h).
//
//   NcclProcesses processes({.count = 2});
//   const TeamOutcome team = processes.run(plan);
//   ASSERT_TRUE(team.ranks[0].result) << whyNot(team);
//   processes.expectNothingLeft();
#pragma once

#include "tests/runtime/manual_clock.h"
#include "tests/runtime/nccl_on_gpus.h"
#include "tests/runtime/team.h"

#include <functional>
#include <string>

namespace stagecraft::runtime {

constexpr NcclResult kRemoteError = 6;

class NcclProcesses : public NcclOnGpus {
public:
    using NcclOnGpus::NcclOnGpus;

    TeamOutcome run(engine::Plan plan, TeamOptions options = {})
    {
        plan.run.mode = engine::RunMode::Processes;
        plan.run.device = engine::DeviceKind::Cuda;
        if (plan.run.transport == engine::Transport::Auto) plan.run.transport = engine::Transport::Nccl;
        options.devices = &test::FakeGpus::get().source();
        options.nccl = &source;
        return runTeam(plan, options);
    }
};

// A lead: NCCL's watchdog sees time pass once a thread waits for what a GPU never ends.
inline std::function<void(engine::Session&, Outcome&)> passesTimeOnceAGpuHangs(ManualClock& clock)
{
    return [&clock](engine::Session& session, Outcome& outcome) {
        follow(session, outcome, [&] {
            if (test::FakeGpus::get().hangs()) clock.advance(30'000'000'000);
            return false;
        });
    };
}

inline std::string whyNot(const TeamOutcome& team)
{
    const Outcome& first = team.ranks.front();
    return first.failure ? first.failure->text : team.refusals.front();
}

} // namespace stagecraft::runtime
