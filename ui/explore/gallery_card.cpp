// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/gallery_card.h"

#include "traces/base/units.h"
#include "ui/bridge/text.h"
#include "ui/explore/gallery_model.h"

#include <QAbstractProxyModel>
#include <QApplication>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

constexpr int kCardWidth = 278;
constexpr int kPictureHeight = 84;
constexpr int kPadding = 10;

QString figuresText(const engine::SurveyEntry& entry)
{
    QString text = QObject::tr("bubble %1 · %2 in flight")
                       .arg(toQt(traces::formatPercent(entry.figures.bubbleMakespan)))
                       .arg(entry.peakActivations, 0, 'g', 4);
    if (entry.peakMemory > 0) text += QStringLiteral(" · ") + toQt(traces::formatSize(entry.peakMemory));
    return text;
}

QString costsText(const engine::SurveyEntry& entry)
{
    QString text = QObject::tr("%1 hand-offs").arg(entry.handOffs);
    if (entry.sentBytes > 0) text += QStringLiteral(" (%1)").arg(toQt(traces::formatSize(entry.sentBytes)));
    if (entry.copies > 0) text += QObject::tr(" · %1 moved away").arg(entry.copies);
    text += entry.weightCopies == 1 ? QObject::tr(" · 1 weight copy") : QObject::tr(" · %1 weight copies").arg(entry.weightCopies);
    return text;
}

} // namespace

void paintPicture(QPainter& painter, const QRectF& area, const engine::SchedulePicture& picture, const Theme& theme)
{
    if (picture.ranks < 1 || picture.length <= 0) return;
    const double lane = area.height() / picture.ranks;
    const double gap = std::min(2.0, lane * 0.15);
    for (int rank = 0; rank < picture.ranks; ++rank)
        painter.fillRect(QRectF(area.left(), area.top() + rank * lane, area.width(), lane - gap), theme.lane);
    const double scale = area.width() / static_cast<double>(picture.length);
    QFont font = painter.font();
    font.setPixelSize(std::clamp(static_cast<int>(lane - gap) - 4, 6, 11));
    painter.setFont(font);
    const double digit = QFontMetricsF(font).horizontalAdvance('0');
    const bool numbers = lane - gap >= 11;
    for (const engine::PictureBlock& block : picture.blocks) {
        const double width = scale * static_cast<double>(block.end - block.begin);
        const QRectF box(area.left() + scale * static_cast<double>(block.begin), area.top() + block.rank * lane, std::max(width - 0.6, 0.4), lane - gap);
        const QColor colour = theme.block(block.paint, block.chunk);
        painter.fillRect(box, colour);
        if (!numbers || block.label.empty() || width < digit * static_cast<double>(block.label.size()) + 2) continue;
        painter.setPen(theme.ink(colour));
        painter.drawText(box, Qt::AlignCenter, toQt(block.label));
    }
}

GalleryCardDelegate::GalleryCardDelegate(QObject* parent) : QStyledItemDelegate(parent), theme_(Theme::of(ThemeKind::Light)) {}

void GalleryCardDelegate::setTheme(const Theme& theme)
{
    theme_ = theme;
    pictures_.clear();
}

void GalleryCardDelegate::forget(int row)
{
    if (row < 0) pictures_.clear();
    else pictures_.erase(row);
}

QSize GalleryCardDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const
{
    const int line = option.fontMetrics.lineSpacing();
    return {kCardWidth + 2 * kPadding, kPictureHeight + 3 * line + 2 * kPadding + 12};
}

void GalleryCardDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const auto* proxy = qobject_cast<const QAbstractProxyModel*>(index.model());
    const QModelIndex source = proxy ? proxy->mapToSource(index) : index;
    const auto* model = qobject_cast<const GalleryModel*>(source.model());
    if (!model) return;
    const GalleryCard& card = model->card(source.row());
    const bool selected = option.state & QStyle::State_Selected;
    const bool focused = option.state & QStyle::State_HasFocus;

    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const QRectF frame = QRectF(option.rect).adjusted(4.5, 4.5, -4.5, -4.5);
    QColor ground = theme_.base;
    if (selected) {
        ground = theme_.accent;
        ground.setAlpha(36);
    }
    painter->setBrush(ground);
    painter->setPen(QPen(selected || focused ? theme_.accent : theme_.line, focused ? 2 : 1));
    painter->drawRoundedRect(frame, 5, 5);

    const QRectF inner = frame.adjusted(kPadding - 3, kPadding - 5, -kPadding + 3, -kPadding + 5);
    const QFontMetricsF metrics(option.font);
    const double line = metrics.lineSpacing();
    QFont bold = option.font;
    bold.setWeight(QFont::DemiBold);
    painter->setFont(bold);
    painter->setPen(theme_.text);
    const QString title = toQt(card.family->title);
    painter->drawText(QRectF(inner.left(), inner.top(), inner.width(), line), Qt::AlignLeft | Qt::AlignVCenter, title);
    const double titleWidth = QFontMetricsF(bold).horizontalAdvance(title);
    painter->setFont(option.font);
    painter->setPen(theme_.mutedText);
    const QString shape = card.known && card.entry.plan.pipeline.chunks > 1 ? tr("%1, v = %2").arg(toQt(card.family->name)).arg(card.entry.plan.pipeline.chunks)
                                                                           : toQt(card.family->name);
    painter->drawText(QRectF(inner.left() + titleWidth + 10, inner.top(), inner.width() - titleWidth - 10, line), Qt::AlignRight | Qt::AlignVCenter,
                      metrics.elidedText(shape, Qt::ElideRight, inner.width() - titleWidth - 10));

    const QRectF picture(inner.left(), inner.top() + line + 4, inner.width(), kPictureHeight);
    const bool refused = card.known && !card.entry.refusal.empty();
    painter->setOpacity(card.current ? 1 : 0.45);
    if (!card.known) {
        painter->drawText(picture, Qt::AlignCenter, tr("is being simulated"));
    } else if (refused) {
        painter->setPen(theme_.warning);
        painter->drawText(picture.adjusted(0, 2, 0, 0), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, toQt(card.entry.refusal));
    } else {
        const double ratio = painter->device()->devicePixelRatioF();
        QPixmap& kept = pictures_[source.row()];
        const QSize pixels = (picture.size() * ratio).toSize();
        if (kept.size() != pixels) {
            kept = QPixmap(pixels);
            kept.setDevicePixelRatio(ratio);
            kept.fill(Qt::transparent);
            QPainter into(&kept);
            into.setFont(option.font);
            paintPicture(into, QRectF(QPointF(0, 0), picture.size()), card.picture, theme_);
        }
        painter->drawPixmap(picture.topLeft(), kept);
    }
    painter->setPen(theme_.text);
    const auto lineAt = [&](int n) { return QRectF(inner.left(), picture.bottom() + 4 + n * line, inner.width(), line); };
    const auto put = [&](int n, const QString& text) {
        painter->drawText(lineAt(n), Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(text, Qt::ElideRight, inner.width()));
    };
    if (refused) {
        if (card.entry.nearest) put(0, tr("takes %1").arg(toQt(engine::changeText(*card.entry.nearest))));
    } else if (card.known) {
        put(0, figuresText(card.entry));
        painter->setPen(theme_.mutedText);
        put(1, costsText(card.entry));
    }
    painter->restore();
}

} // namespace stagecraft::ui
