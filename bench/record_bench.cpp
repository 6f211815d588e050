// SPDX-License-Identifier: Apache-2.0
//
// What recording costs the thread that computes: one event, and all that one action leaves behind.
#include "engine/probe/event_ring.h"
#include "engine/runtime/run_event.h"

#include <benchmark/benchmark.h>

using namespace stagecraft;
using runtime::EventRing;
using runtime::RunEvent;

namespace {

// The reader is as fast as in a run: the ring is emptied before it is full, outside of the time that is measured.
void makeRoom(benchmark::State& state, EventRing<RunEvent>& ring, std::size_t& pushed)
{
    if (++pushed % 4096 != 0) return;
    state.PauseTiming();
    ring.drain([](const RunEvent& event) { benchmark::DoNotOptimize(&event); });
    state.ResumeTiming();
}

void event(benchmark::State& state)
{
    EventRing<RunEvent> ring(1 << 14);
    const traces::Work work = traces::forward(traces::Stage{1}, traces::MicroBatch{2}).work;
    std::size_t pushed = 0;
    for (auto _ : state) {
        ring.push(runtime::actionEvent(traces::Step{3}, work, {.begin = 1, .end = 2, .ready = -1, .available = -1}));
        makeRoom(state, ring, pushed);
    }
    if (ring.lost() > 0) state.SkipWithError("events were lost");
}

// Two moments, three memory samples (begin, peak, end) and the action itself, as threads_torch.cpp records them.
void action(benchmark::State& state)
{
    EventRing<RunEvent> ring(1 << 14);
    const runtime::Clock& clock = runtime::monotonicClock();
    const runtime::LedgerHandle ledger = runtime::MemoryLedger::create(clock);
    const traces::Work work = traces::forward(traces::Stage{1}, traces::MicroBatch{2}).work;
    std::size_t pushed = 0;
    for (auto _ : state) {
        ledger->watchPeak();
        const traces::TimeNs begin = clock.now();
        ring.push(runtime::memoryEvent(begin, ledger->held()));
        const traces::TimeNs end = clock.now();
        ring.push(runtime::memoryEvent(end, ledger->held()));
        ring.push(runtime::memoryEvent(end, ledger->held()));
        ring.push(runtime::actionEvent(traces::Step{3}, work, {.begin = begin, .end = end, .ready = -1, .available = -1}));
        makeRoom(state, ring, pushed);
    }
    if (ring.lost() > 0) state.SkipWithError("events were lost");
}

BENCHMARK(event);
BENCHMARK(action);

} // namespace

BENCHMARK_MAIN();
