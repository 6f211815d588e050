// SPDX-License-Identifier: Apache-2.0
//
// What simulate tells beside the figures of its step, as JSON and for people: links, steps, versions of weights, partition.
#pragma once

#include "app/cli/figures_json.h"
#include "engine/explain/traffic.h"
#include "engine/plan/plan.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

// [{from, to, between_nodes, messages, bytes, mean_bytes_per_s, required_bytes_per_s}]
Json linksJson(const std::vector<engine::LinkTraffic>& links, traces::TimeNs makespan);
std::string linksText(const std::vector<engine::LinkTraffic>& links, traces::TimeNs makespan);

// Of two steps or more: steps: [{step, begin_ns, makespan_ns}], and step_period_ns as traces/analysis/steady_state.h defines it.
void addSteps(Json& json, const traces::Trace& trace, const std::vector<traces::StepFigures>& steps);
std::string stepsText(const std::vector<traces::StepFigures>& steps);

// Of asynchronous schedules: weight_versions, staleness of each rank.
void addVersions(Json& ranks, const engine::Schedule& schedule);
std::string versionsText(const engine::Schedule& schedule);

// {layers: [5, 5], rule: "flops" or null where the plan gives the numbers, layout}. Precondition: a model and a partition that fits it.
Json partitionJson(const engine::Plan& plan);
std::string partitionText(const engine::Plan& plan);

} // namespace stagecraft::cli
