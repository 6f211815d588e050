// SPDX-License-Identifier: Apache-2.0
//
// What a rank's thread leaves behind while it works: plain structs in its ring, turned into records by the collector.
#pragma once

#include "engine/probe/memory_ledger.h"
#include "traces/base/action.h"

#include <array>

namespace stagecraft::runtime {

enum class RunEventKind : std::uint8_t {
    Action,
    Memory,
    Copy, // OFFLOAD or RELOAD
    Wait,
    Exchange, // by NCCL
};
// What a rank waits for, where that has a slice of its own.
enum class WaitCause : std::uint8_t {
    Room,  // to send: the way to the other rank is full
    Flush, // the other ranks come to the end of the step
    Hold,  // the stage is held on purpose
};

struct RunEvent {
    RunEventKind kind = RunEventKind::Action;
    std::uint8_t depth = 0; // of the lane: 1 for the one of two actions that runs beside the rank's own thread
    traces::Step step{};
    traces::Work work{};
    TimeNs begin = 0; // Memory: when
    TimeNs end = 0;
    // Action: when its input was available and when its output was, when what it takes was reloaded, and when what it gives could be
    // sent, where that had to wait; -1 where there is none. Of replicas, all collectives of a stage make the input of its OPTIMIZER, and
    // what a collective needs was available when the last rank gave its own: which is kFrom; kLast is 1 for the last to add to the
    // gradients of its stage, and for the last collective that sums them. kOfAll is 1 for an ALL_REDUCE of all ranks, whose input is
    // there when the last of them has come. kGathered is when the weights were there that an action uses, where UNSHARD gathers them.
    // Memory: bytes by class.
    // Wait: its cause.
    // Exchange: of `work`, a SEND or RECV, and of what goes the other way with it, if any: its kind, stage, micro-batch and flow.
    std::array<std::int64_t, traces::kMemoryClassCount> value{};

    static constexpr std::size_t kReady = 0;
    static constexpr std::size_t kAvailable = 1;
    static constexpr std::size_t kFrom = 2;
    static constexpr std::size_t kLast = 3;
    static constexpr std::size_t kOfAll = 4;
    static constexpr std::size_t kReloaded = 5;
    static constexpr std::size_t kSent = 6;
    static constexpr std::size_t kGathered = 7;
};

struct ActionTimes {
    TimeNs begin = 0;
    TimeNs end = 0;
    TimeNs ready = -1;     // of the input from another stage
    TimeNs available = -1; // of the output to another stage
    TimeNs reloaded = -1;  // of what an OFFLOAD had taken away
    TimeNs sent = -1;      // where there had been no room before
    TimeNs gathered = -1;  // of the weights
};

inline RunEvent actionEvent(traces::Step step, const traces::Work& work, const ActionTimes& times, std::uint8_t depth = 0)
{
    return {RunEventKind::Action, depth, step, work, times.begin, times.end, {times.ready, times.available, 0, 0, 0, times.reloaded, times.sent, times.gathered}};
}

// `work`: the send, or the action that is held.
inline RunEvent waitEvent(traces::Step step, WaitCause cause, const traces::Work& work, traces::Interval span)
{
    return {RunEventKind::Wait, 0, step, work, span.begin, span.end, {static_cast<std::int64_t>(cause)}};
}

inline RunEvent copyEvent(traces::Step step, const traces::Work& work, traces::Interval span)
{
    return {RunEventKind::Copy, 0, step, work, span.begin, span.end, {}};
}

// With what goes the other way as its partner.
inline RunEvent exchangeEvent(traces::Step step, const traces::Action& exchange, traces::Interval span)
{
    const traces::Work& with = exchange.partner;
    return {RunEventKind::Exchange, 0, step, exchange.work, span.begin, span.end,
            {static_cast<std::int64_t>(with.kind), with.stage.value, with.microbatch.value, static_cast<std::int64_t>(with.flow)}};
}

inline traces::Action exchangeOf(const RunEvent& event)
{
    const auto& with = event.value;
    return {event.work, {static_cast<traces::ActionKind>(with[0]), static_cast<traces::Flow>(with[3]), traces::Stage{with[1]}, traces::MicroBatch{with[2]}}};
}

inline RunEvent memoryEvent(TimeNs time, const BytesByClass& bytes)
{
    return {RunEventKind::Memory, 0, {}, {}, time, time, bytes};
}

} // namespace stagecraft::runtime
