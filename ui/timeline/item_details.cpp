// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/item_details.h"

#include "traces/analysis/exchanges.h"
#include "traces/analysis/stream_lanes.h"
#include "ui/bridge/text.h"
#include "ui/timeline/lane_picture.h"

#include <QCoreApplication>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::formatDuration;
using traces::Trace;

// What follows a block is found by looking at every edge: only where that is quick.
constexpr std::size_t kMostEdgesSearched = 2'000'000;
constexpr std::size_t kMostNeighbours = 4;

QString tr(const char* text) { return QCoreApplication::translate("ItemDetails", text); }

QString place(const Trace& trace, traces::SliceRef ref)
{
    return tr("%1 on rank %2").arg(toQt(trace.sliceName(ref))).arg(trace.lane(ref.lane).info().rank.value);
}

traces::TimeNs stepBegin(const TimelineScene& scene, int source, traces::Step step)
{
    const StepPlace* known = scene.steps(source).find(step);
    return known ? known->span.begin : scene.trace(source).extent().begin;
}

void addTimes(ItemDetails& details, const traces::Interval& span, traces::TimeNs origin)
{
    details.lines.emplace_back(tr("Duration"), toQt(formatDuration(span.length())));
    details.lines.emplace_back(tr("Begins"), tr("%1 into the step").arg(toQt(formatDuration(span.begin - origin))));
    details.lines.emplace_back(tr("Ends"), tr("%1 into the step").arg(toQt(formatDuration(span.end - origin))));
}

// Of a kernel of NCCL: its hand-off or sum, and how long it waited for the other ranks.
void addExchange(ItemDetails& details, const Trace& trace, const traces::Slice& slice, const std::optional<traces::ExchangeKernel>& exchange)
{
    const bool sums = traces::isSumName(trace.text(slice.text));
    const QString what = sums ? tr("Sum") : tr("Hand-off");
    if (!exchange) {
        details.lines.emplace_back(what, sums ? tr("not known: it lies in none of a step")
                                              : tr("not known: the kernels and the exchanges of its step do not agree"));
        return;
    }
    details.lines.emplace_back(what, toQt(trace.sliceName(exchange->exchange)));
    if (!exchange->peer) {
        details.lines.emplace_back(tr("Waiting"), tr("not known: the other rank's side is missing"));
        return;
    }
    if (!exchange->met) {
        details.lines.emplace_back(tr("Waiting"), tr("not known: what rank %1 did is not, or the clocks do not agree").arg(exchange->peer->value));
        return;
    }
    QString text = (sums ? tr("%1 for the last, rank %2, moving %3") : tr("%1 for rank %2, moving %3"))
                       .arg(toQt(formatDuration(*exchange->met - slice.begin)))
                       .arg(exchange->peer->value)
                       .arg(toQt(formatDuration(slice.end - *exchange->met)));
    if (exchange->clockError > 0) text += tr(" (± %1: the clocks)").arg(toQt(formatDuration(exchange->clockError)));
    details.lines.emplace_back(tr("Waiting"), text);
}

ItemDetails sliceDetails(const TimelineScene& scene, const TimelineItem& item)
{
    const Trace& trace = scene.trace(item.source);
    if (index(item.slice.lane) >= trace.laneCount() || item.slice.index >= trace.lane(item.slice.lane).size()) return {};
    const traces::Slice slice = trace.slice(item.slice);
    const traces::LaneInfo& lane = trace.lane(item.slice.lane).info();
    const QString name = toQt(trace.sliceName(item.slice));
    const QString kind = toQt(kindName(slice.action.kind()));
    ItemDetails details;
    details.title = holdsGaps(lane) ? tr("Gap: %1").arg(name) : kind.isEmpty() ? name : tr("%1, %2").arg(name, kind);
    details.lines.emplace_back(tr("Rank"), QString::number(lane.rank.value));
    if (lane.kind == traces::LaneKind::Stream) {
        const std::string_view row = streamName(lane);
        details.lines.emplace_back(tr("Row"), QString::fromUtf8(row.data(), static_cast<qsizetype>(row.size())));
    }
    if (slice.action.kind() != traces::ActionKind::None) {
        details.lines.emplace_back(tr("Stage"), QString::number(slice.action.stage().value));
        if (slice.action.microbatch() != traces::kNoMicroBatch)
            details.lines.emplace_back(tr("Micro-batch"), microbatchText(trace.info, slice.action.microbatch()));
    }
    const std::string& text = trace.text(slice.text);
    const bool exchanges = holdsNccl(lane) && (traces::isExchangeName(text) || traces::isSumName(text));
    const std::optional<traces::ExchangeKernel> exchange = exchanges ? traces::exchangeOf(trace, item.slice) : std::nullopt;
    const traces::Step step = exchange ? trace.slice(exchange->exchange).step : slice.step; // NCCL's kernels tell of none
    if (!exchanges || exchange) details.lines.emplace_back(tr("Step"), QString::number(step.value));
    addTimes(details, {slice.begin, slice.end}, stepBegin(scene, item.source, step));
    if (exchanges) addExchange(details, trace, slice, exchange);
    if (const auto& known = scene.insight(item.source, step).slack)
        if (const std::optional<traces::TimeNs> slack = known->of(item.slice))
            details.lines.emplace_back(tr("Slack"), *slack > 0 ? tr("%1 later, and the step is no longer").arg(toQt(formatDuration(*slack)))
                                                               : tr("none: a delay makes the step longer"));
    const std::vector<traces::Edge> into = trace.edgesInto(item.slice);
    for (const traces::Edge& edge : into) {
        const traces::TimeNs made = trace.slice(edge.from).end;
        const QString way = edge.ready > made ? tr(", on the way for %1").arg(toQt(formatDuration(edge.ready - made))) : QString();
        details.lines.emplace_back(tr("Needs"), place(trace, edge.from) + way);
    }
    if (trace.edgeCount() <= kMostEdgesSearched) {
        const std::vector<traces::Edge> from = trace.edgesFrom(item.slice);
        for (std::size_t i = 0; i < std::min(from.size(), kMostNeighbours); ++i)
            details.lines.emplace_back(tr("Feeds"), place(trace, from[i].to));
    }
    details.lines.emplace_back(tr("Trace"), sourceLabel(scene.sources()[static_cast<std::size_t>(item.source)]));
    return details;
}

ItemDetails gapDetails(const TimelineScene& scene, const TimelineItem& item)
{
    const Trace& trace = scene.trace(item.source);
    const traces::Gap& gap = item.gap;
    ItemDetails details;
    details.title = tr("Bubble: %1").arg(causeText(gap));
    details.lines.emplace_back(tr("Rank"), QString::number(gap.rank.value));
    const bool known = index(gap.before.lane) < trace.laneCount() && gap.before.index < trace.lane(gap.before.lane).size();
    const traces::TimeNs origin = known ? stepBegin(scene, item.source, trace.slice(gap.before).step) : trace.extent().begin;
    addTimes(details, gap.span, origin);
    const bool fromStage = gap.cause == traces::GapCause::WaitForStage || gap.cause == traces::GapCause::Transfer;
    if (fromStage && index(gap.producer.lane) < trace.laneCount())
        details.lines.emplace_back(tr("Waits for"), place(trace, gap.producer));
    if (known)
        details.lines.emplace_back(gap.cause == traces::GapCause::Draining ? tr("After") : tr("Until"), place(trace, gap.before));
    details.lines.emplace_back(tr("Trace"), sourceLabel(scene.sources()[static_cast<std::size_t>(item.source)]));
    return details;
}

} // namespace

ItemDetails detailsOf(const TimelineScene& scene, const TimelineItem& item)
{
    if (item.none() || item.source < 0 || item.source >= scene.sourceCount()) return {};
    return item.kind == TimelineItem::Kind::Slice ? sliceDetails(scene, item) : gapDetails(scene, item);
}

QString detailsHtml(const ItemDetails& details)
{
    if (details.title.isEmpty()) return {};
    QString html = QStringLiteral("<b>%1</b><table>").arg(details.title.toHtmlEscaped());
    for (const auto& [name, value] : details.lines)
        html += QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    return html + QStringLiteral("</table>");
}

} // namespace stagecraft::ui
