// SPDX-License-Identifier: Apache-2.0
//
// Zero Bubble Pipeline Parallelism (Qi et al. 2023, arXiv 2401.10241): the profiled times of Table 9 give the bubble rates of
// Table 5. Bubble rate = (cost - m(TF+TI+TW)) / cost. The cost is the makespan for 1F1B, its interleaved form, ZB-H1 and ZB-1p, and
// the longest span of a rank for ZB-H2 and ZB-2p, whose optimizer steps wait for no other rank.
//
// The interleaved column stands twice: an order of actions that is executed strictly waits for every wrap-around from the last rank
// to the first, 2(pv-1) exposed transfers in all; the paper's script waits only for the first micro-batch of every p, which leaves
// 2p(v-1)+p-2 of them: cost = m T + (p-1) T/v + (2p(v-1)+p-2) C with T = TF+TI+TW.
#include "engine/explain/published_tables.h"
#include "engine/schedule/schedule.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <fmt/format.h>

#include <cmath>

namespace stagecraft::engine {
namespace {

struct Row {
    const char* model;
    int heads;
    int hidden;
    int microbatches;
    double forward, inputGrad, weightGrad, transfer; // ms
    int chunks;                                      // of the interleaved column
    double oneFOneB, interleaved, h1, h2, onceP, twiceP;
};

constexpr int kRanks = 8;
constexpr int kSequence = 1024;
// Tables 3, 5 and 9.
constexpr Row kRows[] = {
    {"1.5B", 24, 2304, 24, 18.522, 18.086, 9.337, .601, 3, .2431, .1055, .1585, .1083, .1585, .0433},
    {"1.5B", 24, 2304, 32, 18.513, 18.086, 9.331, .626, 3, .1985, .0818, .1242, .0837, .1242, .0039},
    {"1.5B", 24, 2304, 64, 18.546, 18.097, 9.321, .762, 3, .1240, .0443, .0674, .0444, .0674, .0026},
    {"6.2B", 32, 4096, 24, 29.718, 29.444, 19.927, .527, 4, .2347, .0808, .1323, .0698, .1323, .0029},
    {"6.2B", 32, 4096, 32, 29.802, 29.428, 19.530, .577, 4, .1898, .0628, .1045, .0559, .1045, .0022},
    {"6.2B", 32, 4096, 64, 29.935, 29.621, 19.388, .535, 4, .1091, .0320, .0554, .0294, .0554, .0010},
};

TimeNs nanoseconds(double ms) { return std::llround(ms * 1e6); }

CostTable costsOf(const Row& row, int chunks)
{
    CostTable costs;
    const Bytes kept = 34 * row.hidden + 5 * row.heads * kSequence; // of a layer, in units of sequence times micro-batch
    costs.stages.assign(static_cast<std::size_t>(kRanks * chunks),
                        {.forward = nanoseconds(row.forward / chunks),
                         .backward = nanoseconds(row.inputGrad / chunks) + nanoseconds(row.weightGrad / chunks),
                         .inputGrad = nanoseconds(row.inputGrad / chunks),
                         .weightGrad = nanoseconds(row.weightGrad / chunks),
                         .activationBytes = kept,
                         .wgradBytes = 32 * row.hidden});
    costs.transfer = nanoseconds(row.transfer);
    return costs;
}

enum class Cost { Makespan, Span };

double bubble(const Row& row, const char* schedule, int chunks, Cost cost, int microbatchesKept = 0)
{
    const CostTable costs = costsOf(row, chunks);
    const Schedule made = generate({.name = schedule,
                                    .ranks = kRanks,
                                    .chunks = chunks,
                                    .microbatches = row.microbatches,
                                    .costs = &costs,
                                    .memoryLimit = microbatchesKept * costs.stages.front().activationBytes})
                              .value();
    const traces::StepFigures figures = traces::stepFigures(simulate(made, costs).value(), traces::Step{0}).value();
    return cost == Cost::Makespan ? figures.bubbleMakespan : figures.bubbleSpan;
}

double relaxedInterleaved(const Row& row)
{
    const double v = row.chunks;
    const double work = row.microbatches * (row.forward + row.inputGrad + row.weightGrad);
    const double whole = work + (kRanks - 1) * work / row.microbatches / v + (2 * kRanks * (v - 1) + kRanks - 2) * row.transfer;
    return 1 - work / whole;
}

} // namespace

PublishedTable zeroBubbleTable()
{
    return {.name = "zero-bubble",
            .title = "Zero bubble: bubble rates from profiled times, 8 ranks",
            .source = "Qi et al. 2023, arXiv 2401.10241, Tables 9 and 5",
            .quantity = "bubble rate",
            .columns = {"1F1B", "1F1B-I (strict)", "1F1B-I (paper's rule)", "ZB-H1", "ZB-H2", "ZB-1p", "ZB-2p"},
            .notes = {"ZB-H2 and ZB-2p are measured by the longest span of a rank, the others by the makespan.",
                      "1F1B-I: executed strictly, a rank waits for every wrap-around, which gives slightly more than the paper prints; its "
                      "script waits only for the first micro-batch of every p (closed form)."},
            .digits = 4,
            .rows = {}};
}

void fillZeroBubble(PublishedTable& table)
{
    for (const Row& row : kRows) {
        const double interleaved = bubble(row, "interleaved", row.chunks, Cost::Makespan);
        table.rows.push_back({fmt::format("{} m={}", row.model, row.microbatches),
                              {{row.oneFOneB, bubble(row, "1f1b", 1, Cost::Makespan)},
                               {row.interleaved, interleaved},
                               {row.interleaved, relaxedInterleaved(row)},
                               {row.h1, bubble(row, "zb-h1", 1, Cost::Makespan)},
                               {row.h2, bubble(row, "zb-h2", 1, Cost::Span)},
                               {row.onceP, bubble(row, "zb-auto", 1, Cost::Makespan, kRanks)},
                               {row.twiceP, bubble(row, "zb-auto", 1, Cost::Span, 2 * kRanks)}}});
    }
}

} // namespace stagecraft::engine
