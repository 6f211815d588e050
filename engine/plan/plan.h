// SPDX-License-Identifier: Apache-2.0
//
// A plan is the whole configuration of one pipeline: model, partition, schedule, costs, run. Value type: the window edits
// copies of it (undo is a stack of plans), the command line reads the same file. JSON form: docs/plan.md; see plan_json.h.
//
//   Plan plan = readPlan(text).value();
//   plan.pipeline.schedule = "gpipe";
//   Expected<Schedule> schedule = scheduleOf(plan);
//   Expected<CostTable> costs = costsOf(plan);
#pragma once

#include "engine/model/model.h"
#include "engine/plan/data_spec.h"
#include "engine/plan/run_spec.h"
#include "engine/schedule/nearest_legal.h"
#include "engine/schedule/recompute.h"
#include "engine/schedule/schedule.h"
#include "engine/simulate/cost_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::engine {

// Where sequences are cut: into slices of one length, or of one time (slice_shares.h).
enum class Slicing : std::uint8_t { Equal, Balanced };

struct PipelineSpec {
    std::string schedule = "1f1b"; // a family's name, or "custom"
    int ranks = 4;
    int chunks = 1; // stages per rank
    int microbatches = 8;
    std::string customSchedule; // text form; only for "custom"
    // Without effect where the family does not go by them; 0: the family's own.
    Bytes memoryLimit = 0; // of the activations of a rank
    int group = 0;         // micro-batches that go through a chunk before the next, or of an update
    int slices = 1; // of a sequence, for schedules that cut them
    Sharding sharding = Sharding::None; // what replicas divide: adds actions to the schedule (engine/schedule/shard.h)
    Recompute recompute = Recompute::None; // activations are computed again before they are needed
    Slicing slicing = Slicing::Equal;
    Concatenation concatenation = Concatenation::Direct; // for schedules of units
    double offload = 0; // share of the activations that goes to the host for a while
    bool verticalSync = false; // for schedules that stash versions of the weights (weight_versions.h)

    // The parts of a micro-batch that actions are of: slices of its sequences, or its halves.
    [[nodiscard]] int parts() const;
    bool operator==(const PipelineSpec&) const = default;
};

// Where a plan's costs come from. The origin is shown wherever a cost is.
enum class CostSource : std::uint8_t {
    Assumed,  // the times below, equal for all ranks but for stageScale
    Model,    // estimated from the model's FLOPs and flopsPerSecond
    Measured, // per-stage times taken over from a run
};

struct CostSpec {
    CostSource source = CostSource::Assumed;
    // Assumed: times of one rank for one micro-batch through all its chunks; a chunk takes 1/v.
    TimeNs forward = 1'000'000;
    TimeNs backward = 2'000'000;
    std::optional<TimeNs> inputGrad;  // both or none; then their sum counts, whatever `backward` says, and a file has only them
    std::optional<TimeNs> weightGrad;
    std::optional<TimeNs> overlap;    // of OVERLAP_F_B; F + B unless given
    std::optional<TimeNs> optimizer;  // update of the weights of one rank; none: a measured one, or not simulated
    std::vector<double> stageScale;   // one factor per stage, or empty
    Bytes activationBytes = 0;        // what F keeps per micro-batch of a rank; 0: from the model, if any
    Bytes wgradBytes = 0;             // the part of it that stays until W
    // Model:
    double flopsPerSecond = 50e9;
    // Measured: one entry per stage.
    std::vector<StageCosts> measured;
    std::string measuredFrom; // "run of gpt-small, 2 ranks, threads, 2026-11-28", shown beside the figures
    // Share of a forward that is attention and grows with the position, for slices of sequences; nothing: the model's, or 0.
    std::optional<double> attentionShare;
    // Transfers between ranks of a node, for every source:
    TimeNs latency = 0;
    double bandwidth = 0; // bytes per second; 0: transfers take the latency alone
    Bytes boundaryBytes = 0; // per micro-batch and boundary; 0: from the model, if any
    double jitter = 0;       // relative standard deviation of every action's time (normal, cut at 3 sigma)
    std::uint64_t seed = 1;  // of the jitter

    bool operator==(const CostSpec&) const = default;
};

struct Plan {
    std::string name;
    std::string description;
    ModelSpec model;     // may be empty: simulate only
    Partition partition; // layers per stage; empty: by the rule
    PartitionRule partitionRule = PartitionRule::Flops;
    DataSpec data;
    PipelineSpec pipeline;
    CostSpec costs;
    MachineModel machine; // of simulations
    RunSpec run;

    [[nodiscard]] int stages() const; // at most what an int holds, so that two numbers out of range are no small one
    bool operator==(const Plan&) const = default;
};

// Everything that can be said without running: ranges, model, partition, schedule, costs. First error found.
Expected<void> checkPlan(const Plan& plan);

// What the plan asks its schedule's family for, but for costs: the numbers that the family takes. What it does not take stays in the
// plan, for the next family that does.
ScheduleRequest requestOf(const PipelineSpec& pipeline);

// Whether the plan's schedule can be made, without making what a generator knows how to make; by the plan's costs where its family
// plans by them. `nearest` is a change of one number with which it can be, where there is one near.
struct ScheduleVerdict {
    Expected<void> possible;
    std::optional<LegalChange> nearest = {};
};
ScheduleVerdict judgeSchedule(const Plan& plan);

// `stop` ends the making of a large one with an error; another thread may ask for that at any time.
// Families that plan go by `costs`, or else by the plan's own.
Expected<Schedule> scheduleOf(const Plan& plan, const std::stop_token& stop = {}, const CostTable* costs = nullptr);

// Plans reckon with the same number of stages on every rank; an error says which ranks differ.
Expected<void> checkEvenStages(const Schedule& schedule);

// The partition in use: the plan's own, or the one by its rule (partition_rules.h). Error where it does not fit model or stages.
Expected<Partition> partitionOf(const Plan& plan);

// The cost table in use, one entry per stage.
Expected<CostTable> costsOf(const Plan& plan);

// Changes ranks and chunks, and with them what depends on their number: the partition becomes balanced, stage factors and
// measured costs that no longer fit are dropped (source falls back to Model, or Assumed without a model).
Plan withShape(Plan plan, int ranks, int chunks);

// The plan with a schedule that is written out (engine/schedule/schedule.h): the text gives the order, and with it ranks,
// chunks and micro-batches. An error names line and cell of what cannot be read, or what the schedule breaks.
Expected<Plan> withCustomSchedule(Plan plan, std::string text);

// A balanced partition instead of the plan's own, and without the costs that were measured for that one.
Plan withoutPartition(Plan plan);

} // namespace stagecraft::engine
