// SPDX-License-Identifier: Apache-2.0
//
// Transfers that a rank posts together: none waits for another of them, and the rank goes on when all are done (Megatron-LM's
// send_forward_recv_backward and the like, batch_isend_irecv). In a schedule's list they follow each other, each but the last with
// the next one as its partner; in text they are one cell, "(0SEND_F2;0RECV_B0)P2P". Whoever takes transfers one by one finds them as
// ever; by convention the sends of a batch come first, so that this is right wherever sends do not wait.
//
//   for (std::size_t at = 0; at < list.size(); at = batchEnd(list, at)) post(list, at, batchEnd(list, at));
#pragma once

#include "engine/schedule/schedule.h"

namespace stagecraft::engine {

// More are not posted together: a rank has two neighbours and two directions.
inline constexpr std::size_t kMaxBatch = 16;

// The list's action at that position is posted together with the one behind it. An action that was moved away from its partner is not.
[[nodiscard]] bool joinsNext(const std::vector<Action>& list, std::size_t at);

// Behind the batch that begins there; at + 1 where an action stands alone.
[[nodiscard]] std::size_t batchEnd(const std::vector<Action>& list, std::size_t at);

// Appends the transfers as one batch.
void appendBatch(std::vector<Action>& list, const std::vector<Action>& transfers);

// The same schedule with every transfer posted alone, in the same order.
Schedule withoutBatches(Schedule schedule);

} // namespace stagecraft::engine
