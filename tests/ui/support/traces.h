// SPDX-License-Identifier: GPL-3.0-or-later
//
// Small traces whose every time is known, for tests of the views.
#pragma once

#include "traces/store/trace.h"

#include <array>
#include <memory>
#include <vector>

namespace stagecraft::ui::support {

inline constexpr traces::TimeNs kMs = 1'000'000;

struct TraceShape {
    traces::TraceLabel label = traces::TraceLabel::Simulated;
    traces::TimeNs start = 0;              // of the first step, on the trace's own clock
    std::vector<traces::TimeNs> unit{kMs}; // per step: what the picture's one character takes
    traces::TimeNs between = 0;            // from one step's end to the next one's start
};

// 1F1B with 2 ranks and 2 micro-batches:
//
//   rank 0  F0 F1 .. .. B0 B0 .. B1 B1      idle 2-4 and 6-7: waiting for stage 1
//   rank 1  .. F0 B0 B0 F1 B1 B1 .. ..      idle 0-1: filling, 7-9: draining
//   unit    0  1  2  3  4  5  6  7  8
//
// with a transfer lane on rank 0 (F0: 1-1.5), data edges, and activations of 100 bytes for each micro-batch held.
inline std::shared_ptr<traces::Trace> twoRanks(const TraceShape& shape = {})
{
    using namespace traces;
    auto trace = std::make_shared<Trace>();
    trace->info.label = shape.label;
    trace->info.title = "two ranks";
    trace->info.schedule = "1f1b";
    trace->info.ranks = 2;
    trace->info.microbatches = 2;
    trace->info.stageToRank = {Rank{0}, Rank{1}};
    const LaneId zero = trace->addLane({.rank = Rank{0}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 0"});
    const LaneId one = trace->addLane({.rank = Rank{1}, .kind = LaneKind::Compute, .depth = 0, .name = "rank 1"});
    const LaneId sends = trace->addLane({.rank = Rank{0}, .kind = LaneKind::Transfer, .depth = 0, .name = "transfers"});

    TimeNs t0 = shape.start;
    for (std::size_t step = 0; step < shape.unit.size(); ++step) {
        const TimeNs u = shape.unit[step];
        const auto add = [&](LaneId lane, int from, int to, Action action) {
            return trace->append(lane, {.begin = t0 + from * u, .end = t0 + to * u, .action = action, .step = Step{step}, .text = {}});
        };
        const MicroBatch a{0};
        const MicroBatch b{1};
        const SliceRef f00 = add(zero, 0, 1, forward(Stage{0}, a));
        const SliceRef f01 = add(zero, 1, 2, forward(Stage{0}, b));
        const SliceRef f10 = add(one, 1, 2, forward(Stage{1}, a));
        const SliceRef b10 = add(one, 2, 4, backward(Stage{1}, a));
        const SliceRef f11 = add(one, 4, 5, forward(Stage{1}, b));
        const SliceRef b11 = add(one, 5, 7, backward(Stage{1}, b));
        const SliceRef b00 = add(zero, 4, 6, backward(Stage{0}, a));
        const SliceRef b01 = add(zero, 7, 9, backward(Stage{0}, b));
        trace->append(sends, {.begin = t0 + u, .end = t0 + u + u / 2, .action = makeAction(ActionKind::SendForward, Stage{0}, a),
                              .step = Step{step}, .text = {}});
        const auto edge = [&](SliceRef from, SliceRef to) {
            trace->addEdge({.kind = EdgeKind::Data, .from = from, .to = to, .ready = trace->slice(from).end});
        };
        edge(f00, f10);
        edge(f10, b10);
        edge(f01, f11);
        edge(f11, b11);
        edge(b10, b00);
        edge(b11, b01);
        const auto hold = [&](int rank, int at, Bytes bytes) {
            trace->addMemory(Rank{rank}, MemoryClass::Activations, t0 + at * u, bytes);
        };
        hold(0, 0, 100);
        hold(0, 1, 200);
        hold(0, 6, 100);
        hold(0, 9, 0);
        hold(1, 1, 100);
        hold(1, 4, 100);
        hold(1, 7, 0);
        trace->addStep({.step = Step{step}, .span = {t0, t0 + 9 * u}, .loss = 1.0 / static_cast<double>(step + 1)});
        t0 += 9 * u + shape.between;
    }
    return trace;
}

// twoRanks() on a GPU: two kernels of rank 0 (0-1 and 2-3 ms) and why its stream stood still between them.
struct StreamWithGap {
    std::shared_ptr<traces::Trace> trace = twoRanks();
    traces::LaneId stream{};
    traces::LaneId gaps{};
};
inline StreamWithGap streamWithGap(const char* cause)
{
    using namespace traces;
    StreamWithGap made;
    made.stream = made.trace->addLane({.rank = Rank{0}, .kind = LaneKind::Stream, .depth = 0, .name = "GPU 0 stream 7"});
    made.gaps = made.trace->addLane({.rank = Rank{0}, .kind = LaneKind::Stream, .depth = 1, .name = "GPU 0 stream 7, gaps"});
    const auto add = [&](LaneId lane, const char* name, TimeNs from, TimeNs to) {
        made.trace->append(lane, {.begin = from, .end = to, .action = {}, .step = Step{0}, .text = made.trace->intern(name)});
    };
    add(made.stream, "gemm", 0, kMs);
    add(made.stream, "relu", 2 * kMs, 3 * kMs);
    add(made.gaps, cause, kMs, 2 * kMs);
    return made;
}

// twoRanks() by NCCL: a send of rank 0 (0-3 ms) that waits for rank 1's receipt (2-3 ms), each with its kernel, and one more kernel of
// rank 0 that nothing is known of.
struct Exchanging {
    std::shared_ptr<traces::Trace> trace = twoRanks();
    std::array<traces::LaneId, 2> kernels{}; // by rank
};
inline Exchanging exchangingRanks()
{
    using namespace traces;
    Exchanging made;
    const auto put = [&](int rank, const std::string& lane, const char* name, TimeNs from, TimeNs to) {
        const LaneId id = made.trace->addLane({.rank = Rank{rank}, .kind = LaneKind::Stream, .depth = static_cast<std::int32_t>(made.trace->laneCount()), .name = lane});
        made.trace->append(id, {.begin = from, .end = to, .action = {}, .step = Step{0}, .text = made.trace->intern(name)});
        return id;
    };
    constexpr const char* kKernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    put(0, "rank 0 exchanges", "0SEND_F1", 0, 3 * kMs);
    put(1, "rank 1 exchanges", "1RECV_F1", 2 * kMs, 3 * kMs);
    made.kernels = {put(0, "GPU 0 stream 9, NCCL", kKernel, 0, 3 * kMs), put(1, "GPU 1 stream 9, NCCL", kKernel, 2 * kMs, 3 * kMs)};
    made.trace->append(made.kernels[0], {.begin = 7 * kMs, .end = 8 * kMs, .action = {}, .step = Step{0}, .text = made.trace->intern(kKernel)});
    return made;
}

// The same of a sum of two replicas of one stage.
inline Exchanging summingRanks()
{
    using namespace traces;
    Exchanging made;
    made.trace->info.stageToRank = {Rank{0}}; // and rank 1 is the other replica's
    for (const auto& [rank, from] : {std::pair{0, TimeNs{0}}, {1, 2 * kMs}}) {
        const LaneId sums = made.trace->addLane({.rank = Rank{rank}, .kind = LaneKind::Collective, .name = "rank " + std::to_string(rank) + " collectives"});
        made.trace->append(sums, {.begin = from, .end = 3 * kMs, .action = makeAction(ActionKind::AllReduce, Stage{0}), .step = Step{0}});
        const LaneId kernels = made.trace->addLane({.rank = Rank{rank}, .kind = LaneKind::Stream, .depth = 9, .name = "GPU 0 stream 9, NCCL"});
        made.trace->append(kernels, {.begin = from, .end = 3 * kMs, .action = {}, .step = Step{0},
                                     .text = made.trace->intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")});
        made.kernels[static_cast<std::size_t>(rank)] = kernels;
    }
    return made;
}

} // namespace stagecraft::ui::support
