// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/icons.h"

#include <QPainter>
#include <QPainterPath>
#include <QPixmap>

namespace stagecraft::ui {
namespace {

constexpr double kSide = 16; // the shapes' own units

void paintProgram(QPainter& painter, const Theme& theme)
{
    // A small pipeline: three ranks, forward and backward.
    painter.setPen(Qt::NoPen);
    const QColor forward = theme.block(traces::PaintClass::Forward, 0);
    const QColor backward = theme.block(traces::PaintClass::Backward, 0);
    for (int rank = 0; rank < 3; ++rank) {
        const double y = 1.5 + rank * 4.6;
        painter.setBrush(forward);
        painter.drawRoundedRect(QRectF(1 + rank * 1.6, y, 4.2, 3.6), 0.8, 0.8);
        painter.setBrush(backward);
        painter.drawRoundedRect(QRectF(8.6 - rank * 1.0, y, 6.2, 3.6), 0.8, 0.8);
    }
}

void paint(QPainter& painter, Symbol symbol, const Theme& theme, const QColor& ink)
{
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(ink);
    switch (symbol) {
    case Symbol::Run: {
        QPainterPath path(QPointF(4, 2.5));
        path.lineTo(13.5, 8);
        path.lineTo(4, 13.5);
        path.closeSubpath();
        painter.drawPath(path);
        break;
    }
    case Symbol::Pause:
        painter.drawRect(QRectF(4, 3, 3, 10));
        painter.drawRect(QRectF(9, 3, 3, 10));
        break;
    case Symbol::Stop: painter.drawRoundedRect(QRectF(3.5, 3.5, 9, 9), 1, 1); break;
    case Symbol::Follow:
        painter.setPen(QPen(ink, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter.setBrush(Qt::NoBrush);
        painter.drawLine(QPointF(2, 8), QPointF(10, 8));
        painter.drawPolyline(QPolygonF({{7, 4.5}, {10.5, 8}, {7, 11.5}}));
        painter.drawLine(QPointF(13.5, 3), QPointF(13.5, 13));
        break;
    case Symbol::Measured:
        painter.setPen(QPen(ink, 1.4, Qt::SolidLine, Qt::RoundCap));
        painter.setBrush(Qt::NoBrush);
        painter.drawEllipse(QPointF(8, 9), 5.2, 5.2);
        painter.drawLine(QPointF(8, 9), QPointF(10.4, 6.6));
        painter.drawLine(QPointF(6.5, 1.8), QPointF(9.5, 1.8));
        break;
    case Symbol::Program: paintProgram(painter, theme); break;
    }
}

QPixmap picture(Symbol symbol, const Theme& theme, const QColor& ink, int side)
{
    QPixmap pixmap(side, side);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.scale(side / kSide, side / kSide);
    paint(painter, symbol, theme, ink);
    return pixmap;
}

} // namespace

QIcon icon(Symbol symbol, const Theme& theme)
{
    const QColor ink = symbol == Symbol::Run ? theme.good : symbol == Symbol::Stop ? theme.error : theme.text;
    QColor faint = theme.mutedText;
    faint.setAlphaF(0.45F);
    QIcon made;
    for (const int side : {16, 32, 64}) {
        made.addPixmap(picture(symbol, theme, ink, side), QIcon::Normal);
        made.addPixmap(picture(symbol, theme, faint, side), QIcon::Disabled);
    }
    return made;
}

} // namespace stagecraft::ui
