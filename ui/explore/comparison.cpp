// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/comparison.h"

#include "traces/base/units.h"
#include "ui/bridge/text.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <functional>

namespace stagecraft::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("Comparison", text); }

constexpr const char* kUnknown = "\u2013";

double peakActivations(const ComparedStep& step)
{
    double most = 0;
    for (const traces::RankFigures& rank : step.figures.ranks) most = std::max(most, rank.peakActivations);
    return most;
}

double peakMemory(const ComparedStep& step)
{
    traces::Bytes most = 0;
    for (const traces::RankFigures& rank : step.figures.ranks) most = std::max(most, rank.peakMemory);
    return static_cast<double>(most);
}

// "−18.18 %", "±0 %": a hyphen is no minus.
QString relative(double value, double first)
{
    const double change = value / first - 1;
    if (std::abs(change) < 5e-5) return QStringLiteral("±0 %");
    return (change < 0 ? QStringLiteral("−") : QStringLiteral("+")) + toQt(traces::formatPercent(std::abs(change)));
}

// Of shares the difference is told in points: a half more of a bubble is not half a bubble more.
QString points(double value, double first)
{
    const double change = (value - first) * 100;
    if (std::abs(change) < 5e-3) return QStringLiteral("±0");
    return QStringLiteral("%1%2 points").arg(change < 0 ? QStringLiteral("−") : QStringLiteral("+")).arg(std::abs(change), 0, 'f', 2);
}

using Value = std::function<std::optional<double>(const ComparedStep&)>;
using Show = std::function<QString(double)>;
enum class Differ { Relatively, InPoints };

} // namespace

std::vector<QStringList> comparisonTable(const std::vector<ComparedStep>& steps)
{
    std::vector<QStringList> rows;
    QStringList titles{QString()};
    for (const ComparedStep& step : steps) titles << step.title;
    rows.push_back(titles);
    const auto add = [&](const QString& name, const Value& value, const Show& show, Differ differ) {
        QStringList row{name};
        const std::optional<double> first = steps.empty() ? std::nullopt : value(steps.front());
        bool any = false;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const std::optional<double> own = value(steps[i]);
            any = any || own;
            QString cell = own ? show(*own) : QString::fromUtf8(kUnknown);
            if (i > 0 && own && first && (differ == Differ::InPoints || *first != 0))
                cell += QStringLiteral(" (%1)").arg(differ == Differ::InPoints ? points(*own, *first) : relative(*own, *first));
            row << cell;
        }
        if (any) rows.push_back(row);
    };
    const Show time = [](double ns) { return toQt(traces::formatDuration(std::llround(ns))); };
    const Show share = [](double fraction) { return toQt(traces::formatPercent(fraction)); };
    const Show number = [](double value) { return QString::number(value, 'g', 4); };
    const Show bytes = [](double value) { return toQt(traces::formatSize(std::llround(value))); };
    add(tr("step"), [](const ComparedStep& s) { return static_cast<double>(s.figures.makespan); }, time, Differ::Relatively);
    add(tr("longest span of a rank"), [](const ComparedStep& s) { return static_cast<double>(s.figures.maxSpan); }, time, Differ::Relatively);
    add(tr("work of a rank"), [](const ComparedStep& s) { return s.figures.work; }, time, Differ::Relatively);
    add(tr("bubble of the makespan"), [](const ComparedStep& s) { return s.figures.bubbleMakespan; }, share, Differ::InPoints);
    add(tr("bubble of the span"), [](const ComparedStep& s) { return s.figures.bubbleSpan; }, share, Differ::InPoints);
    add(tr("bubble over ideal"), [](const ComparedStep& s) { return s.figures.bubbleOverIdeal; }, share, Differ::InPoints);
    add(tr("throughput, micro-batches/s"),
        [](const ComparedStep& s) {
            return s.microbatches > 0 && s.figures.makespan > 0 ? std::optional(s.microbatches * 1e9 / static_cast<double>(s.figures.makespan))
                                                                 : std::nullopt;
        },
        number, Differ::Relatively);
    add(tr("peak activations"), [](const ComparedStep& s) { return peakActivations(s); }, number, Differ::Relatively);
    add(tr("peak memory"), [](const ComparedStep& s) { return peakMemory(s) > 0 ? std::optional(peakMemory(s)) : std::nullopt; }, bytes, Differ::Relatively);
    add(tr("hand-offs between ranks"),
        [](const ComparedStep& s) { return s.handOffs ? std::optional(static_cast<double>(*s.handOffs)) : std::nullopt; }, number, Differ::Relatively);
    add(tr("copies of the weights"),
        [](const ComparedStep& s) { return s.weightCopies ? std::optional(static_cast<double>(*s.weightCopies)) : std::nullopt; }, number, Differ::Relatively);
    return rows;
}

} // namespace stagecraft::ui
