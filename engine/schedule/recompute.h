// SPDX-License-Identifier: Apache-2.0
//
// Recompute (activation checkpointing; Chen et al., arXiv 1604.06174; GPipe, arXiv 1811.06965 sec. 2.3): a forward keeps its input
// alone, and the activations are computed again right before the backward that needs them. Nothing but the own forward is needed
// for that, so a rank that waits for a gradient computes them meanwhile.
//
//   withRecompute(oneFOneB).order[0] -> 0F0,...,0RECOMPUTE0,0B0,...
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

enum class Recompute : std::uint8_t { None, Full };

// A RECOMPUTE before each B, I and pair, but for what is computed again already. Shape and everything else stay.
Schedule withRecompute(Schedule schedule);

} // namespace stagecraft::engine
