// SPDX-License-Identifier: Apache-2.0
//
// Actions a second of the simulator: schedule generation, activation memory and the written trace included.
#include "app/keep_freed_memory.h"
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"

#include <benchmark/benchmark.h>

#include <string>

using namespace stagecraft;

namespace {

void simulate(benchmark::State& state, const std::string& name, int chunks)
{
    const auto ranks = static_cast<int>(state.range(0));
    const auto microbatches = static_cast<int>(state.range(1));
    engine::CostTable costs;
    costs.stages.assign(static_cast<std::size_t>(ranks * chunks), {.forward = 1000,
                                                                   .backward = 2000,
                                                                   .inputGrad = 1000,
                                                                   .weightGrad = 1000,
                                                                   .overlap = 3000,
                                                                   .activationBytes = 1 << 20,
                                                                   .weightBytes = 1 << 20});
    std::size_t actions = 0;
    for (auto _ : state) {
        const engine::Schedule schedule =
            engine::generate({.name = name, .ranks = ranks, .chunks = chunks, .microbatches = microbatches, .costs = &costs}).value();
        traces::Trace trace = engine::simulate(schedule, costs).value();
        benchmark::DoNotOptimize(trace.extent());
        actions += schedule.actionCount();
    }
    state.counters["actions_per_s"] = benchmark::Counter(static_cast<double>(actions), benchmark::Counter::kIsRate);
}

// Every family; those that plan by costs at the size that the design names for them.
void registerFamilies()
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        const int chunks = family.name == "interleaved" ? 4 : family.minChunks;
        auto* bench = benchmark::RegisterBenchmark(
            family.name.c_str(), [name = family.name, chunks](benchmark::State& state) { simulate(state, name, chunks); });
        bench->Unit(benchmark::kMillisecond);
        if (family.plansByCosts) bench->Args({16, 64});
        else bench->Args({64, 1024});
        if (family.name == "1f1b") bench->Args({8, 64});
    }
}

} // namespace

int main(int argc, char** argv)
{
    stagecraft::keepFreedMemory(); // as the programs do
    registerFamilies();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
