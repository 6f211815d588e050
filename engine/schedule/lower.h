// SPDX-License-Identifier: Apache-2.0
//
// Lowering: from a schedule of computing actions to one with SEND and RECV, for stages that lie on different ranks. Which transfers
// there are follows from the schedule; where they stand in a rank's order does not, and decides whether sends that wait deadlock:
//   pytorch   (_add_send_recv) ranks are visited in turn, each executes its next action if it can; a SEND follows its producer at once,
//             and the matching RECV is appended to the other rank's list at that same moment: as early as it can arrive.
//   megatron  (Megatron-LM, lower_megatron.cpp) for 1F1B and interleaved: a SEND and the RECV before the next action are posted
//             together where they go to and come from neighbours that do the opposite (batch.h).
//   deferred  a RECV comes right before the action that needs it, a SEND right after its producer, each alone.
//
//   lowerCommunication(gpipe).value().order[1] -> 1RECV_F0,1F0,...
#pragma once

#include "engine/schedule/schedule.h"

#include <array>
#include <optional>
#include <string_view>

namespace stagecraft::engine {

enum class LoweringRule : std::uint8_t { PyTorch, Megatron, Deferred };

inline constexpr std::array<LoweringRule, 3> kLoweringRules{LoweringRule::PyTorch, LoweringRule::Megatron, LoweringRule::Deferred};

// The words of the command line.
std::string_view loweringRuleName(LoweringRule rule);
std::optional<LoweringRule> loweringRuleOf(std::string_view name);

// An error where the schedule has communication already, cannot be executed, or the rule does not cover it.
Expected<Schedule> lowerCommunication(const Schedule& schedule, LoweringRule rule = LoweringRule::PyTorch);

// The computing actions alone, in their order: what lowerCommunication() would start from. Of a legal schedule it is legal.
Schedule withoutCommunication(Schedule schedule);

[[nodiscard]] bool hasCommunication(const Schedule& schedule);

} // namespace stagecraft::engine
