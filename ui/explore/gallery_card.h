// SPDX-License-Identifier: GPL-3.0-or-later
//
// How a card of the gallery looks: title, the picture of its step, three figures; the reason instead of the picture where the schedule
// refuses the plan's shape. The pictures are kept as pixels until card, theme or size change.
#pragma once

#include "engine/explain/schedule_picture.h"
#include "ui/theme/theme.h"

#include <QPixmap>
#include <QStyledItemDelegate>

#include <map>

class QPainter;

namespace stagecraft::ui {

// A row per rank, time to the right, in the colours of the timeline; numbers where they have room.
void paintPicture(QPainter& painter, const QRectF& area, const engine::SchedulePicture& picture, const Theme& theme);

class GalleryCardDelegate : public QStyledItemDelegate {
    Q_OBJECT
public:
    explicit GalleryCardDelegate(QObject* parent = nullptr);

    void setTheme(const Theme& theme);
    void forget(int row); // its picture changed; -1: all did

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    Theme theme_;
    mutable std::map<int, QPixmap> pictures_; // by row of the model behind the filter
};

} // namespace stagecraft::ui
