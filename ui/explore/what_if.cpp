// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/what_if.h"

#include "engine/explain/family_shape.h"
#include "engine/plan/partition_rules.h"
#include "traces/base/parse_list.h"
#include "traces/base/text.h"
#include "traces/base/units.h"
#include "ui/bridge/text.h"

#include <QCoreApplication>

#include <fmt/format.h>

#include <numeric>
#include <optional>

namespace stagecraft::ui {

using engine::Plan;
using engine::WhatIfKind;
using engine::WhatIfRow;
using traces::Error;
using traces::Expected;

namespace {

QString tr(const char* text) { return QCoreApplication::translate("stagecraft::ui::WhatIf", text); }

Expected<int> wholeNumber(std::string_view text)
{
    bool whole = false;
    const int number = toQt(std::string(traces::trimmed(text))).toInt(&whole);
    if (!whole || number < 1) return Error{fmt::format("\"{}\" is no whole number from 1 on", text)};
    return number;
}

Expected<double> factor(std::string_view text)
{
    bool known = false;
    const double number = toQt(std::string(traces::trimmed(text))).toDouble(&known);
    if (!known || !(number >= 0) || !(number <= 1e6)) return Error{fmt::format("\"{}\" is no factor from 0 to 1e+06", text)};
    return number;
}

// One value for each stage.
template <class T, class Parse>
Expected<std::vector<T>> forEachStage(const QString& text, int stages, Parse parse)
{
    Expected<std::vector<T>> list = traces::parseList<T>(fromQt(text), parse);
    if (list.ok() && static_cast<int>(list.value().size()) != stages)
        return Error{fmt::format("it has {}, and there are {}; give one for each", traces::counted(list.value().size(), "entry"), traces::counted(stages, "stage"))};
    return list;
}

// A list, one number for each stage; or as a plan has it, a rule or a layout. The rule `time` goes by the trace's own times.
Expected<Plan> partitioned(Plan plan, const QString& asked)
{
    if (plan.model.empty()) return Error{"the trace has no model whose layers could be given out; leave it empty"};
    const bool list = asked.front().isDigit() || asked.front() == '-';
    if (!list) {
        Expected<Plan> ruled = engine::withPartition(std::move(plan), fromQt(asked));
        if (!ruled.ok()) return ruled;
        if (const auto fits = engine::partitionOf(ruled.value()); !fits.ok()) return fits.error();
        return ruled;
    }
    const Expected<std::vector<int>> layers = forEachStage<int>(asked, plan.stages(), wholeNumber);
    if (!layers.ok()) return layers.error();
    const auto sum = std::accumulate(layers.value().begin(), layers.value().end(), std::size_t{0});
    if (sum != plan.model.layers.size())
        return Error{fmt::format("they sum up to {}, and the model has {}", sum, traces::counted(plan.model.layers.size(), "layer"))};
    plan.partition = layers.value();
    return plan;
}

Expected<Plan> changed(Plan plan, const WhatIfChanges& changes)
{
    if (!changes.microbatches.isEmpty()) {
        const Expected<int> number = wholeNumber(fromQt(changes.microbatches));
        if (!number.ok()) return number.error().in("micro-batches");
        plan.pipeline.microbatches = number.value();
    }
    if (!changes.partition.isEmpty()) {
        Expected<Plan> given = partitioned(std::move(plan), changes.partition);
        if (!given.ok()) return given.error().in("layers of each stage");
        plan = std::move(given).value();
    }
    if (!changes.stageTimes.isEmpty()) {
        const Expected<std::vector<double>> factors = forEachStage<double>(changes.stageTimes, plan.stages(), factor);
        if (!factors.ok()) return factors.error().in("times of each stage");
        plan.costs.stageScale = factors.value();
    }
    return plan;
}

QString titleOf(const WhatIfRow& row)
{
    const QString label = toQt(traces::labelText(row.label));
    switch (row.kind) {
    case WhatIfKind::Trace: return label;
    case WhatIfKind::Same: return tr("predicted, as it was");
    case WhatIfKind::Changed: return tr("predicted");
    case WhatIfKind::Performed: return tr("%1, run now").arg(label);
    }
    return {};
}

} // namespace

Expected<std::vector<Plan>> changedPlans(const Plan& plan, const WhatIfChanges& changes)
{
    std::vector<std::string> schedules = changes.schedules;
    if (schedules.empty()) schedules.push_back(plan.pipeline.schedule);
    std::vector<Plan> plans;
    for (const std::string& schedule : schedules) {
        const Expected<Plan> other = changed(engine::withSchedule(plan, schedule), changes);
        if (!other.ok()) return other.error();
        if (other.value() != plan) plans.push_back(other.value());
    }
    if (plans.empty()) return Error{"nothing is changed; check a schedule, or fill in a number"};
    return plans;
}

std::vector<QStringList> whatIfTable(const std::vector<WhatIfRow>& rows)
{
    std::vector<QStringList> table{{QString(), tr("schedule"), tr("pipeline"), tr("step"), tr("prediction error"), tr("speed-up"),
                                    tr("bubble of the makespan"), tr("efficiency"), tr("peak activations"), tr("peak memory")}};
    for (const WhatIfRow& row : rows) {
        const engine::ScheduleFamily* family = engine::findFamily(row.pipeline.schedule);
        table.push_back({titleOf(row), family ? toQt(family->title) : tr("its own order"),
                         tr("p = %1, v = %2, m = %3").arg(row.pipeline.ranks).arg(row.pipeline.chunks).arg(row.pipeline.microbatches),
                         toQt(traces::formatDuration(row.step)),
                         row.predictionError ? QString::asprintf("%+.2f %%", 100 * *row.predictionError) : QString(),
                         QString::number(row.speedup, 'f', 3), toQt(traces::formatPercent(row.bubbleMakespan)), QString::number(row.efficiency, 'f', 3),
                         QString::number(row.peakActivations, 'g', 4), row.peakMemory > 0 ? toQt(traces::formatSize(row.peakMemory)) : tr("not known")});
    }
    return table;
}

bool isRunOf(const Plan& ran, const Plan& predicted)
{
    const Expected<engine::Partition> one = engine::partitionOf(ran);
    const Expected<engine::Partition> other = engine::partitionOf(predicted);
    return ran.model == predicted.model && ran.pipeline == predicted.pipeline && one.ok() && other.ok() && one.value() == other.value();
}

} // namespace stagecraft::ui
