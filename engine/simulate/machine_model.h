// SPDX-License-Identifier: Apache-2.0
//
// What a pipeline runs on: the ways between its ranks, how sends behave, devices that differ, the replicas beside it. All of it
// is left out by default: equal ranks in one node whose transfers occupy nothing, the model of the Zero-Bubble paper (arXiv
// 2401.10241).
//
//   MachineModel machine;
//   machine.ranksPerNode = 8;                                             // ranks 0..7, 8..15, ...
//   machine.between = {.latency = 10'000, .bytesPerSecond = 25e9};        // of a hop from one node to another
//   machine.rankScale = {1, 1, 1.3, 1};                                   // rank 2 takes 1.3 times as long for everything
#pragma once

#include "engine/schedule/send_mode.h"
#include "engine/schedule/sharding.h"
#include "traces/base/units.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft::engine {

using traces::Bytes;
using traces::TimeNs;

// A way that data takes: n bytes need latency + n / bytesPerSecond (Hockney's model), of which the second part occupies it.
struct Link {
    TimeNs latency = 0;
    double bytesPerSecond = 0; // 0: no limit

    [[nodiscard]] TimeNs occupied(Bytes bytes) const
    {
        return bytesPerSecond > 0 ? static_cast<TimeNs>(std::llround(static_cast<double>(bytes) / bytesPerSecond * 1e9)) : 0;
    }
    bool operator==(const Link&) const = default;
};

// What a transfer between two ranks keeps from other work.
enum class TransferPlace : std::uint8_t {
    Nothing,  // it only delays whoever needs the data
    CopyLane, // a rank sends one thing at a time, beside its computing
    Ranks,    // the sender computes nothing meanwhile, and the receiver waits in its RECV
};

struct MachineModel {
    int ranksPerNode = 0; // 0: all ranks in one node
    Link between{};       // from node to node; inside a node a plan's latency and bandwidth hold
    TransferPlace transfers = TransferPlace::Nothing;
    // One transfer after the other on the way from one rank to another, and between nodes on the one from node to node.
    bool sharedLinks = false;
    SendMode send = SendMode::Buffered;

    std::vector<double> rankScale;  // factor on the times of all actions of a rank; empty: 1 each
    std::vector<TimeNs> lateStart;  // when a rank begins its first step; empty: 0 each
    Bytes memory = 0;               // of a rank; beyond it, it runs out; 0: not known
    Link host{};                    // to the memory of the host: OFFLOAD, RELOAD

    int replicas = 1;               // of the whole pipeline, each on other data (data parallelism)
    Link replica{};                 // among the ranks that hold the same stage
    Bytes bucketBytes = 25 << 20;   // gradients that one all-reduce takes, as in PyTorch's DistributedDataParallel
    bool barrier = false;           // no rank updates its weights before all have their gradients

    [[nodiscard]] int nodeOf(int rank) const { return ranksPerNode > 0 ? rank / ranksPerNode : 0; }
    [[nodiscard]] double scaleOf(std::size_t rank) const { return rank < rankScale.size() ? rankScale[rank] : 1; }

    bool operator==(const MachineModel&) const = default;
};

} // namespace stagecraft::engine
