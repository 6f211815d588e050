// SPDX-License-Identifier: Apache-2.0
//
// Is a schedule legal? Rules (for every global stage s of S and micro-batch i of m):
//   every (s,i) has exactly one F, and either one B or one I and one W (or none of them in a forward-only schedule);
//   an action lies on the rank that holds its stage;
//   on its rank F(s,i) comes before B/I(s,i), and I(s,i) before W(s,i);
//   the whole can be executed: F(s,i) after F(s-1,i); B/I(s,i) after B/I(s+1,i), on the last stage after its own F.
//     Where ranks wait for each other in a circle, that is a deadlock, reported as the circle.
//   OFFLOAD after its F, RELOAD after its OFFLOAD and before its B or I, one each and neither without the other;
//   RECOMPUTE after its F and before its B or I, at most one, and not of what is offloaded;
//   OPTIMIZER of a stage at most once, after its last B or W; in an asynchronous schedule after each group of micro-batches
//     (schedule.h, validate_updates.h);
//   with SEND/RECV actions: each RECV has its SEND and the other way round, a SEND comes after what it sends, a RECV
//     before what uses it.
//   with UNSHARD, RESHARD and REDUCE_GRAD: weights are used while they are gathered, gradients reduced once they are complete
//     (sharding_rules.h);
//   how sends are carried out (send_mode.h) decides what waits for what; a schedule without communication is judged for
//     rendezvous and channel as PyTorch's rule lowers it.
//
//   ValidationReport report = validate(schedule, {.send = SendMode::Rendezvous});
//   if (!report.legal()) print(report.errors);
#pragma once

#include "engine/schedule/schedule.h"
#include "engine/schedule/send_mode.h"

#include <string>
#include <vector>

namespace stagecraft::engine {

struct ScheduleFault {
    Rank rank{};
    int position = 0; // in the rank's order, from 0; -1 where something is missing
    std::string action;
    std::string message; // names rank, position and action itself, fit to be shown alone
    bool operator==(const ScheduleFault&) const = default;
};

struct WaitingRank {
    Rank rank{};
    int position = 0;
    std::string action;   // what it cannot start
    std::string waitsFor; // the action that must come first
    Rank waitsForRank{};
    std::string why = {}; // where the two actions do not tell it: what stands between them
    bool operator==(const WaitingRank&) const = default;
};

struct ValidationReport {
    std::vector<ScheduleFault> errors;
    std::size_t faultCount = 0; // with those that were left out
    std::vector<WaitingRank> deadlock; // the circle, each waiting for the next; empty when there is none
    [[nodiscard]] bool legal() const { return errors.empty() && deadlock.empty(); }
};

struct ValidationOptions {
    SendMode send = SendMode::Buffered;
    std::size_t maxErrors = 100; // the count of those left out stands in the last one's message
};

ValidationReport validate(const Schedule& schedule, const ValidationOptions& options = {});

} // namespace stagecraft::engine
