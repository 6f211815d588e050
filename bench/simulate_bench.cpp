// SPDX-License-Identifier: Apache-2.0
//
// Actions a second of the simulator: schedule generation, activation memory and the written trace included.
#include "app/keep_freed_memory.h"
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"

#include <benchmark/benchmark.h>

using namespace stagecraft;

namespace {

void simulate(benchmark::State& state, const char* name, int chunks)
{
    const auto ranks = static_cast<int>(state.range(0));
    const auto microbatches = static_cast<int>(state.range(1));
    engine::CostTable costs;
    costs.stages.assign(static_cast<std::size_t>(ranks * chunks),
                        {.forward = 1000, .backward = 2000, .activationBytes = 1 << 20, .weightBytes = 1 << 20});
    std::size_t actions = 0;
    for (auto _ : state) {
        const engine::Schedule schedule =
            engine::generate({.name = name, .ranks = ranks, .chunks = chunks, .microbatches = microbatches}).value();
        traces::Trace trace = engine::simulate(schedule, costs).value();
        benchmark::DoNotOptimize(trace.extent());
        actions += schedule.actionCount();
    }
    state.counters["actions_per_s"] = benchmark::Counter(static_cast<double>(actions), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(simulate, one_f_one_b, "1f1b", 1)->Args({64, 1024})->Args({8, 64})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, gpipe, "gpipe", 1)->Args({64, 1024})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, interleaved, "interleaved", 4)->Args({64, 1024})->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    stagecraft::keepFreedMemory(); // as the programs do
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
