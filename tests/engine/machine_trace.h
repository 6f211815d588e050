// SPDX-License-Identifier: Apache-2.0
//
// What a simulation on a machine (engine/simulate/machine.h) says of events, edges and times, as tests ask for it.
#pragma once

#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace stagecraft::test {

using traces::TimeNs;

inline traces::Trace simulated(const engine::Schedule& schedule, const engine::CostTable& costs, int steps = 1)
{
    traces::Expected<traces::Trace> trace = engine::simulate(schedule, costs, {}, steps);
    if (!trace.ok()) throw std::runtime_error(trace.error().message);
    return std::move(trace).value();
}

// What happened, whatever lane it is on.
inline std::multiset<std::string> eventsOf(const traces::Trace& trace)
{
    std::multiset<std::string> events;
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const traces::Lane& lane = trace.lane(traces::LaneId{l});
        for (std::size_t i = 0; i < lane.size(); ++i)
            events.insert(std::to_string(lane.info().rank.value) + " " + std::to_string(static_cast<int>(lane.info().kind)) + " " +
                          toText(lane.action(i)) + " " + std::to_string(lane.begin(i)) + "-" + std::to_string(lane.end(i)));
    }
    return events;
}

inline std::multiset<std::string> edgesOf(const traces::Trace& trace)
{
    std::multiset<std::string> edges;
    for (std::size_t l = 0; l < trace.laneCount(); ++l)
        for (const traces::Edge& edge : trace.edgesOfLane(traces::LaneId{l}))
            edges.insert(trace.sliceName(edge.from) + ">" + trace.sliceName(edge.to) + "@" + std::to_string(edge.ready));
    return edges;
}

inline TimeNs endOf(const traces::Trace& trace, const std::string& name, int step = 0)
{
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const traces::Lane& lane = trace.lane(traces::LaneId{l});
        for (std::size_t i = 0; i < lane.size(); ++i)
            if (toText(lane.action(i)) == name && lane.step(i).value == step) return lane.end(i);
    }
    ADD_FAILURE() << "no " << name << " in step " << step;
    return -1;
}

inline traces::StepFigures figuresIn(const traces::Trace& trace, int step = 0) { return traces::stepFigures(trace, traces::Step{step}).value(); }

inline TimeNs idleBy(const traces::StepFigures& figures, int rank, traces::GapCause cause)
{
    return figures.ranks[static_cast<std::size_t>(rank)].idleByCause[static_cast<std::size_t>(cause)];
}

} // namespace stagecraft::test
