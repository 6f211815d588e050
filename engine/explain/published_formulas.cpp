// SPDX-License-Identifier: Apache-2.0
//
// Two that are told as whole numbers. DualPipe (deepseek-ai/DualPipe, README): bubble time (p/2-1)(F&B + B - 3W); with F = I = W = 1
// and pairs of 3 that is 2(p/2-1) slots of 3m + that. And what latency does: a hop of half a forward costs 1F1B time in its
// steady state, and GPipe only while it fills and drains; the makespans were found by an independent event simulation.
#include "engine/explain/published_tables.h"
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <fmt/format.h>

namespace stagecraft::engine {
namespace {

constexpr TimeNs kSlot = 1000;

double makespanSlots(const char* schedule, int ranks, int microbatches, TimeNs transfer)
{
    CostTable costs;
    costs.stages.assign(static_cast<std::size_t>(ranks), {.forward = kSlot,
                                                          .backward = 2 * kSlot,
                                                          .inputGrad = kSlot,
                                                          .weightGrad = kSlot,
                                                          .overlap = 3 * kSlot});
    costs.transfer = transfer;
    const Schedule made = generate({.name = schedule, .ranks = ranks, .microbatches = microbatches}).value();
    const traces::StepFigures figures = traces::stepFigures(simulate(made, costs).value(), traces::Step{0}).value();
    return static_cast<double>(figures.makespan) / static_cast<double>(kSlot);
}

} // namespace

PublishedTable dualPipeTable()
{
    return {.name = "dualpipe",
            .title = "DualPipe: length of a step, in forwards of a stage",
            .source = "DeepSeek-V3, arXiv 2412.19437; the authors' README",
            .quantity = "makespan with F = I = W = 1 and pairs of 3",
            .columns = {"DualPipe"},
            .notes = {"Published is the formula: 3m + (p/2-1)(F&B + B - 3W). 8 ranks with 20 micro-batches are the authors' picture."},
            .digits = 0,
            .rows = {}};
}

void fillDualPipe(PublishedTable& table)
{
    for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 20}, {16, 40}})
        table.rows.push_back({fmt::format("p={} m={}", p, m), {{3.0 * m + (p / 2 - 1) * 2.0, makespanSlots("dualpipe", p, m, 0)}}});
}

PublishedTable latencyTable()
{
    return {.name = "latency",
            .title = "What latency does: length of a step with hops of half a forward",
            .source = "an independent event simulation, after the Zero Bubble paper's model of transfers (arXiv 2401.10241)",
            .quantity = "makespan with F = 1, B = 2, a hop 0.5",
            .columns = {"1F1B", "Eager-1F1B", "GPipe"},
            .notes = {"Without latency all three take 33, 117 and 27. 1F1B pays in its steady state, the others only for filling and draining."},
            .digits = 0,
            .rows = {}};
}

void fillLatency(PublishedTable& table)
{
    struct Row {
        int ranks, microbatches;
        double oneFOneB, eager, gpipe;
    };
    for (const Row& row : {Row{4, 8, 41, 36, 36}, Row{8, 32, 151, 124, 124}, Row{3, 7, 33, 29, 29}}) {
        const auto ours = [&](const char* name) { return makespanSlots(name, row.ranks, row.microbatches, kSlot / 2); };
        table.rows.push_back({fmt::format("p={} m={}", row.ranks, row.microbatches),
                              {{row.oneFOneB, ours("1f1b")}, {row.eager, ours("eager-1f1b")}, {row.gpipe, ours("gpipe")}}});
    }
}

} // namespace stagecraft::engine
