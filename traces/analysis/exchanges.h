// SPDX-License-Identifier: Apache-2.0
//
// Which hand-off or sum a kernel of NCCL carries out, and since when something moves in it. NCCL's kernel does not tell; the engine tells, with
// events, what it gave NCCL to exchange, and the stream carries that out in its order, with a kernel each:
//
//   rank 0   exchanges  |--------0SEND_F3-------|
//            NCCL         |waiting|  moving   |       the n-th kernel of a step is of its n-th exchange
//   rank 1   exchanges      |------1RECV_F3-----|
//            NCCL                 |  moving   |       it waits until the other rank's has begun as well
//
// A sum of replicas (ALL_REDUCE on the ranks' lanes of collectives) lies between two events as well, so the kernels that lie there are its own,
// however many NCCL makes of it: the k-th of each rank meet, and move once the last of them has begun.
//
// Nothing is guessed. A sum that has not as many kernels on each rank of it is not known. Of a rank and step with another number of kernels than of exchanges, because records were dropped, no kernel is known;
// nor is one that does not lie where its exchange is. Of a trace without the other rank's side, or whose clocks say that something was
// received before the other rank's kernel began, it is not known since when it moves. What is only sent may be over before the other rank
// comes: NCCL has room for a little. Such a kernel waited for nobody.
//
//   for (const ExchangeKernel& each : exchangesOf(trace, Step{3})) if (each.met) draw(each.kernel, *each.met);
#pragma once

#include "traces/store/trace.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::traces {

struct ExchangeKernel {
    SliceRef kernel{};
    SliceRef exchange{};             // whose text names the hand-off, or two: "0SEND_F3 + 0RECV_B1"; or the sum's block
    std::optional<Rank> peer{};      // the other rank, of a sum the other one that came last; none: its side is not in the trace
    std::optional<TimeNs> met{};     // within the kernel, when it began to move; none: not known
    TimeNs clockError = 0;           // of the two ranks' clocks: `met` is off by no more
};

// Of all ranks, by kernel.
[[nodiscard]] std::vector<ExchangeKernel> exchangesOf(const Trace& trace, Step step);
[[nodiscard]] const ExchangeKernel* findExchange(const std::vector<ExchangeKernel>& all, SliceRef kernel); // of these; null: nothing is known of it
// Those of a kernel that nothing is known of are none.
[[nodiscard]] std::optional<ExchangeKernel> exchangeOf(const Trace& trace, SliceRef kernel);

// What the kernels of NCCL of a rank did within a time; several at once count each.
struct NcclTime {
    TimeNs waiting = 0;
    TimeNs moving = 0;
    TimeNs notKnown = 0;

    [[nodiscard]] TimeNs all() const { return waiting + moving + notKnown; }
    bool operator==(const NcclTime&) const = default;
};
[[nodiscard]] NcclTime ncclTimeOf(const Trace& trace, Rank rank, Interval within);
[[nodiscard]] std::map<Rank, NcclTime> ncclTimes(const Trace& trace); // of the whole trace; of ranks with such kernels

// The name of an exchange: a SEND or RECV, and what goes the other way with it.
[[nodiscard]] std::string exchangeText(const Action& exchange);
[[nodiscard]] std::optional<Action> exchangeOfText(std::string_view text);

} // namespace stagecraft::traces
