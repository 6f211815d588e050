// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_style.h"

#include "ui/timeline/time_ticks.h"

#include <map>

namespace stagecraft::ui {

using traces::Action;
using traces::ActionKind;
using traces::Flow;

LaneStyle::LaneStyle(const Theme& theme, const traces::TraceInfo& info)
{
    for (int i = 0; i < kColours; ++i) {
        const QColor colour = theme.block(static_cast<traces::PaintClass>(i / kShades), i % kShades);
        colours_[static_cast<std::size_t>(i)] = colour.rgb();
        inks_[static_cast<std::size_t>(i)] = theme.ink(colour).rgb();
        strokes_[static_cast<std::size_t>(i)] = theme.stroke(colour).rgb();
    }
    // Chunks of a rank are counted in the order of its stages. Looked up, not indexed: a file may hold any number as a rank.
    std::map<traces::Rank, int> stagesOfRank;
    for (const traces::Rank rank : info.stageToRank) chunkOfStage_.push_back(stagesOfRank[rank]++);
}

int LaneStyle::chunkOf(const Action& action) const
{
    const std::size_t stage = index(action.stage());
    const int chunk = action.stage().value >= 0 && stage < chunkOfStage_.size() ? chunkOfStage_[stage] : 0;
    // The second direction of a two-direction schedule looks like another chunk, which on its rank it is.
    return chunk + (action.work.flow == Flow::Up ? 1 : 0);
}

int LaneStyle::colourIndex(const Action& action) const
{
    return colourIndex(traces::paintClass(action.kind())) + chunkOf(action) % kShades;
}

QString microbatchText(const traces::TraceInfo& info, traces::MicroBatch microbatch)
{
    if (info.slices <= 1) return QString::number(microbatch.value);
    return QStringLiteral("%1.%2").arg(microbatch.value / info.slices).arg(microbatch.value % info.slices);
}

namespace {

// Of a function's name what tells it from others: neither its result, nor its namespaces, nor what is in brackets.
std::string bareName(const std::string& name)
{
    std::string bare;
    int depth = 0;
    for (const char c : name.starts_with("void ") ? std::string_view(name).substr(5) : std::string_view(name)) {
        if (c == '<' || c == '(') ++depth;
        if (depth == 0) bare += c;
        if (c == '>' || c == ')') --depth;
    }
    const std::size_t space = bare.rfind("::");
    return space == std::string::npos ? bare : bare.substr(space + 2);
}

} // namespace

QString blockLabel(const traces::Trace& trace, const traces::Slice& slice, LabelDetail detail)
{
    const Action& action = slice.action;
    if (action.kind() == ActionKind::None) return QString::fromStdString(detail == LabelDetail::Number ? bareName(trace.text(slice.text)) : trace.text(slice.text));
    const bool numbered = action.microbatch().value >= 0;
    const QString number = numbered ? microbatchText(trace.info, action.microbatch()) : QString();
    if (detail == LabelDetail::Number) return number;

    QString text;
    if (action.kind() == ActionKind::Overlap) {
        const auto partner = traces::kindText(action.partner.kind);
        text = QStringLiteral("F%1 + %2%3")
                   .arg(number, QString::fromUtf8(partner.data(), static_cast<qsizetype>(partner.size())))
                   .arg(microbatchText(trace.info, action.partner.microbatch));
    } else if (numbered) {
        const auto kind = traces::kindText(action.kind());
        text = QString::fromUtf8(kind.data(), static_cast<qsizetype>(kind.size())) + number;
    } else {
        const auto name = traces::kindName(action.kind());
        text = QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    }
    if (detail == LabelDetail::Short) return text;
    const QString dot = QStringLiteral(" \u00b7 ");
    return text + dot + QStringLiteral("stage %1").arg(action.stage().value) + dot + durationText(slice.duration());
}

} // namespace stagecraft::ui
