// SPDX-License-Identifier: Apache-2.0
//
// In which order do the ranks of a step exchange what they exchange, where a send waits for its receipt and each rank has one
// communication stream? One total order for all of them, of which every rank issues its part. Then nothing deadlocks, whatever the
// schedule; with an order of its own, such as "send what I have made, receive what I need next", even 1F1B does.
//
//   const TransferOrder order = transferOrder(schedule).value();
//   std::size_t enqueued = 0;                                     // actions of withoutCommunication(schedule).order[r]
//   for (const TransferGroup& group : order.groups[r]) {
//       while (enqueued < group.behind) enqueueAction(enqueued++);
//       postTogether(group.parts());                              // ncclGroupStart, ncclSend and ncclRecv, ncclGroupEnd
//   }
//   while (enqueued < actions) enqueueAction(enqueued++);
//
// The model, which is NCCL's with one communicator and one stream for it per rank:
//   - the host of a rank enqueues computing actions on its compute stream and groups on its communication stream, and waits for neither;
//     both streams carry out what they are given in its order, one after the other;
//   - a send begins when the action that made its data has ended; the action that needs a receipt begins when it is there. Both are
//     events of CUDA, which must be recorded before they are waited for: so a group is enqueued behind the actions that make what it
//     sends, and before those that need what it brings;
//   - a group begins when all its sends have their data, and ends when the other rank has come to its own side of it (rendezvous).
//
// Why nothing waits for ever. A dry run gives all actions and transfers moments, so that all of them stand in one line T: a transfer behind
// the action that makes it and before the one that needs it, the actions of a rank in their order. Each stream carries out its part of T in
// the order of T, and the host enqueues in it. Take the first in T that has not ended: all that its streams have before it, what makes its
// data and, for a transfer, what the other rank's streams have before it, stand earlier in T and have ended. So it goes on. That holds
// even where one stream does everything, or the host waits for each action. (A developer of NCCL argues the same way in
// github.com/NVIDIA/nccl/issues/784: every pair as one collective of all, in which most have nothing to do.) Nothing is said of two
// communicators, or of two streams for one: those have no common order.
//
// Two transfers x, y of one pair in opposite directions become one group if no other transfer of either rank stands between them, and y is
// made before what x brings is needed. Then x may as well wait for y: what needs x on y's sender comes behind what makes y, so that the
// line with x moved to y is still one. They meet in one kernel, both ways at once. Larger groups are not made: NCCL hangs with very
// large ones (pytorch/pytorch#174288), and with others than the other side's (NVIDIA/nccl#2130).
//
// SEND and RECV that the schedule has itself say from when and until when a transfer may be; the order of receipts in a rank's list gives
// way to the common one. Not part of it: sums of gradients (of replicas, of copies of a stage), which come behind all transfers of a step.
#pragma once

#include "engine/schedule/schedule.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stagecraft::engine {

// Positions are those of the computing actions alone, as in withoutCommunication(schedule).
struct Transfer {
    traces::Work work{}; // SEND_F or SEND_B as its sender names it; OFFLOAD to a partner, and RELOAD, which the partner sends
    Rank from{};
    Rank to{};
    std::size_t madeBehind = 0;   // so many actions of `from` come before
    std::size_t neededBefore = 0; // the first action of `to` that waits for it; their number where none does
    bool operator==(const Transfer&) const = default;
};

struct TransferPart {
    std::size_t transfer = 0; // in TransferOrder::transfers
    bool sends = false;       // this rank is `from`
    bool operator==(const TransferPart&) const = default;
};

// What a rank issues as one: a transfer, or two in opposite directions with the same rank.
struct TransferGroup {
    std::array<TransferPart, 2> slots{};
    std::uint8_t count = 0;
    Rank peer{};
    std::size_t behind = 0; // it is enqueued behind so many actions of the rank
    [[nodiscard]] std::span<const TransferPart> parts() const { return {slots.data(), count}; }
    bool operator==(const TransferGroup&) const = default;
};

struct TransferOrder {
    std::vector<Transfer> transfers;                // in the total order
    std::vector<std::vector<TransferGroup>> groups; // [rank], each in that order
};

// By the moments of these costs; without any, a forward takes 1 and a backward 2. Where they are right and transfers take no time, the
// order and its groups delay nobody; the less they fit, the more a transfer that is ready waits behind one that is not. Whether the ranks
// deadlock does not depend on them.
// Errors: a schedule that is not legal (validate.h), costs of another number of stages.
Expected<TransferOrder> transferOrder(const Schedule& schedule, const CostTable* costs = nullptr);

} // namespace stagecraft::engine
