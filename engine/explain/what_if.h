// SPDX-License-Identifier: Apache-2.0
//
// What if the pipeline of a trace had another schedule, other numbers, another partition, a faster stage or network? The changed plan is
// simulated with what the trace shows of its costs (observed.h). Pure; any thread.
//
//   const Observed observed = observe(trace).value();
//   const Prediction same = predict(observed, observed.plan).value();
//   const Prediction other = predict(observed, withSchedule(observed.plan, "zb-h1")).value();
//   WhatIfRow told = predictedRow(observed, same, WhatIfKind::Same);
//   told.predictionError                                      how far off the prediction of what really happened is
//   WhatIfRow row = predictedRow(observed, other);
//   row.step, row.speedup                                     ns; against the step of the trace
//
// The speed-up is that of micro-batches per time: m'/t' over m/t, the ratio of the steps where m stays. The efficiency is that of a run:
// the step simulated without what hand-offs, copies and collectives cost, over the step.
#pragma once

#include "engine/explain/observed.h"

#include <optional>
#include <stop_token>

namespace stagecraft::engine {

struct Prediction {
    Plan plan; // that was simulated; its costs are the trace's, fitted to its stages (refit.h)
    CostTable costs;
    traces::Trace trace;
    traces::StepFigures figures; // of its one step
    TimeNs idealStep = 0;        // without what hand-offs, copies and collectives cost
    std::vector<std::string> notes; // what its costs rest on beside what was seen
};

// `changed` is observed.plan with other values; whatever times it holds, the trace's are taken. Errors: what the plan cannot be, costs
// that cannot be fitted to its stages, a schedule that needs times which the trace does not tell, those of simulate().
Expected<Prediction> predict(const Observed& observed, Plan changed, const std::stop_token& stop = {});

enum class WhatIfKind : std::uint8_t {
    Trace,     // the trace's own step
    Same,      // the prediction of the plan as it was
    Changed,   // that of another
    Performed, // the other one, really run
};
std::string_view whatIfKindKey(WhatIfKind kind); // "trace", "same", "changed", "performed"

struct WhatIfRow {
    WhatIfKind kind = WhatIfKind::Trace;
    traces::TraceLabel label = traces::TraceLabel::Simulated;
    PipelineSpec pipeline;
    Partition partition; // layers per stage; empty without a model
    TimeNs step = 0;     // makespan
    double bubbleMakespan = 0;
    double bubbleSpan = 0;
    double bubbleOverIdeal = 0;
    double efficiency = 0;
    double peakActivations = 0; // micro-batches of a whole rank, the fullest rank's
    Bytes peakMemory = 0;       // likewise; 0: not known
    double speedup = 1;
    std::optional<double> predictionError = {}; // predicted over real step, minus 1; of a prediction whose real step is known
    std::vector<std::string> notes = {};

    bool operator==(const WhatIfRow&) const = default;
};

// `same` is the prediction of the trace's own plan.
WhatIfRow traceRow(const Observed& observed, const Prediction& same);
WhatIfRow predictedRow(const Observed& observed, const Prediction& prediction, WhatIfKind kind = WhatIfKind::Changed);
// `run` is of the plan that was predicted. An error where none of its steps came to its end.
Expected<WhatIfRow> performedRow(const Observed& observed, const Prediction& prediction, const traces::Trace& run);

// Of a step: predicted over real time, minus 1.
double predictionError(TimeNs predicted, TimeNs real);

} // namespace stagecraft::engine
