// SPDX-License-Identifier: Apache-2.0
//
// The partition that a plan without one of its own gets by its rule, and the ones that a text asks for. Pure.
//
//   partitionByRule(plan).value()                        how many layers each stage takes
//   plan = withPartition(plan, "memory").value();        a rule
//   plan = withPartition(plan, "Et*3|(tt|)*3,L").value() a layout (engine/model/layout.h)
//
// The largest stage is as small as can be: of the FLOPs of forward and backward, or of the parameters; by `uniform` the numbers of layers
// differ by one at most, and the later stages have more; by `memory` as memory_partition.h tells.
#pragma once

#include "engine/plan/plan.h"

#include <optional>
#include <string_view>
#include <variant>

namespace stagecraft::engine {

// Error where there are more stages than layers, or the schedule that `memory` goes by cannot be made. The rule `time` has no partition
// before there are times.
Expected<Partition> partitionByRule(const Plan& plan);

// The plan with the partition that makes the slowest stage as fast as can be, by the costs that `measured` has, which is a plan of the same
// model; and with those costs, fitted to it (refit.h). A layer's time is the part of its stage's that it has in the FLOPs: what the layers
// of a stage really take was not measured.
Expected<Plan> partitionedByTime(const Plan& measured, Plan plan);

std::string_view partitionRuleText(PartitionRule rule);
std::optional<PartitionRule> partitionRuleOf(std::string_view word);

// What a text asks for: a rule by its word, or a layout of the model.
using PartitionChoice = std::variant<PartitionRule, Partition>;
Expected<PartitionChoice> partitionChoice(const ModelSpec& model, std::string_view text);

// The plan by that choice. By the rule `time` it has its partition from its own costs, and keeps no rule. Measured costs that were of
// another partition are left out.
Expected<Plan> withPartition(Plan plan, std::string_view ruleOrLayout);

// The plan with that partition, and without measured costs where they are of another one.
Plan withLayers(Plan plan, Partition partition);

// Before costs that were measured with the partition in use are taken over: by the rule `memory` it would change with the schedule.
void keepPartition(Plan& plan);

} // namespace stagecraft::engine
