// SPDX-License-Identifier: Apache-2.0
//
// A small trace that has some of everything.
#pragma once

#include "tests/traces/staircase.h"

namespace stagecraft::traces::test {

inline Trace sample()
{
    Trace trace = staircase({"0F0 0F1 .   0B0 .   0B1 0OPTIMIZER", ".   1F0 1B0 1F1 1B1 1OPTIMIZER"}, {.latency = 10});
    trace.info.title = "sample";
    const LaneId extra = trace.addLane({.rank = Rank{1}, .kind = LaneKind::Stream, .depth = 0, .name = "loader"});
    trace.append(extra, {.begin = 100, .end = 200, .text = trace.intern("load")});
    trace.append(extra, {.begin = 200, .end = 300, .text = trace.intern("copy")});
    for (int t = 0; t < 5; ++t) trace.addMemory(Rank{1}, MemoryClass::Activations, t * 1000, 64 * (t % 3));
    trace.addMemory(Rank{0}, MemoryClass::Weights, 0, 4096);
    const LaneId copies = trace.addLane({.rank = Rank{1}, .kind = LaneKind::Copy, .depth = 0, .name = "rank 1 copies"});
    trace.append(copies, {.begin = 3000, .end = 3500, .action = makeAction(ActionKind::Offload, Stage{1}, MicroBatch{1})});
    const LaneId collectives = trace.addLane({.rank = Rank{0}, .kind = LaneKind::Collective, .depth = 0, .name = "rank 0 collectives"});
    trace.append(collectives, {.begin = 5000, .end = 6000, .action = makeAction(ActionKind::AllReduce, Stage{0})});
    trace.addMemory(Rank{0}, MemoryClass::Versions, 1000, 4096);
    trace.addMemory(Rank{0}, MemoryClass::Buffers, 1000, 64);
    trace.addMemory(Rank{1}, MemoryClass::Recompute, 2000, 32);
    trace.info.memoryLimit = 8192;
    trace.info.inference = true;
    trace.addStep({.step = Step{0}, .span = {0, 7000}, .loss = 2.5});
    trace.addPause({7100, 7200});
    trace.addClockReading({.rank = Rank{1}, .host = "node \"b\"", .at = 50, .offset = -1'234'567'890, .error = 420});
    const GpuId shared = trace.addGpu({.host = "node b", .number = 0, .name = "NVIDIA \"H200\"", .bus = "0000:1b:00", .total = 1 << 20, .ranks = {Rank{0}, Rank{1}}});
    const GpuId bare = trace.addGpu({.number = 3});
    trace.addGpuMemory(shared, 500, {.active = 1000, .reserved = 2048, .used = 5000});
    trace.addGpuMemory(bare, 0, {});
    trace.addGpuMemory(shared, 2500, {.active = 4096, .reserved = 4096, .used = 4096});
    trace.addNote("a note");
    trace.addInformation("what is \"good\" to know");
    trace.addLostEvents(3);
    return trace;
}

} // namespace stagecraft::traces::test
