// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/gallery_model.h"

#include "traces/base/units.h"
#include "ui/bridge/text.h"

#include <algorithm>

namespace stagecraft::ui {

GalleryModel::GalleryModel(QObject* parent) : QAbstractListModel(parent)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) cards_.push_back({.family = &family});
}

void GalleryModel::setPlan(const engine::Plan& plan)
{
    const bool same = plan_ && *plan_ == plan;
    if (same && job_.busy()) return;
    if (!same) {
        plan_ = plan;
        for (GalleryCard& card : cards_) card.current = false;
        emit dataChanged(index(0), index(rowCount() - 1));
    }
    goOn(); // with what is left, where it was stopped
}

void GalleryModel::stop() { job_.cancel(); }

// The next card that is not current; the result of the one before comes by a queued call, so that the window has its turn.
void GalleryModel::goOn()
{
    const auto next = std::ranges::find(cards_, false, &GalleryCard::current);
    if (next == cards_.end()) {
        emit finished();
        return;
    }
    const auto row = static_cast<std::size_t>(next - cards_.begin());
    job_.start(
        [plan = *plan_, family = next->family](JobControl& control) {
            Made made{.entry = engine::survey(plan, *family, control.stopToken()), .picture = {}};
            if (made.entry.trace) made.picture = engine::pictureOf(*made.entry.trace);
            made.entry.trace.reset();
            return made;
        },
        [this, row](Made made) { take(row, std::move(made)); });
}

void GalleryModel::take(std::size_t row, Made made)
{
    GalleryCard& card = cards_[row];
    card.entry = std::move(made.entry);
    card.picture = std::move(made.picture);
    card.known = card.current = true;
    const QModelIndex changed = index(static_cast<int>(row));
    emit dataChanged(changed, changed);
    goOn();
}

int GalleryModel::rowOf(const std::string& schedule) const
{
    const auto found = std::ranges::find_if(cards_, [&](const GalleryCard& card) { return card.family->name == schedule; });
    return found == cards_.end() ? -1 : static_cast<int>(found - cards_.begin());
}

int GalleryModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(cards_.size()); }

QString GalleryModel::words(int row) const
{
    const GalleryCard& shown = card(row);
    if (!shown.known) return tr("not simulated yet");
    if (!shown.entry.refusal.empty()) {
        const QString reason = toQt(shown.entry.refusal);
        return shown.entry.nearest ? tr("%1. It would take %2.").arg(reason, toQt(engine::changeText(*shown.entry.nearest))) : reason;
    }
    return tr("bubble %1, peak %2 micro-batches, %3 hand-offs")
        .arg(toQt(traces::formatPercent(shown.entry.figures.bubbleMakespan)))
        .arg(shown.entry.peakActivations, 0, 'g', 4)
        .arg(shown.entry.handOffs);
}

QVariant GalleryModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const GalleryCard& shown = card(index.row());
    switch (role) {
    case Qt::DisplayRole: return toQt(shown.family->title);
    case Qt::ToolTipRole: return tr("%1\n%2").arg(toQt(shown.family->idea), words(index.row()));
    case Qt::AccessibleTextRole: return tr("%1: %2").arg(toQt(shown.family->title), words(index.row()));
    default: return {};
    }
}

} // namespace stagecraft::ui
