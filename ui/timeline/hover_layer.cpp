// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/hover_layer.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>

namespace stagecraft::ui {

HoverLayer::HoverLayer(QWidget* parent) : QWidget(parent), theme_(Theme::of(ThemeKind::Light))
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
}

void HoverLayer::setTheme(const Theme& theme)
{
    theme_ = theme;
    update();
}

void HoverLayer::setState(const State& state)
{
    if (state == state_) return;
    state_ = state;
    update();
}

void HoverLayer::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF& lanes = state_.lanes;
    const QFontMetricsF metrics(font());
    const auto chip = [&](double centre, double top, const QString& text, const QColor& ground, const QColor& ink) {
        const double width = metrics.horizontalAdvance(text) + 12;
        const double left = std::clamp(centre - width / 2, lanes.left(), std::max(lanes.left(), lanes.right() - width));
        const QRectF box(left, top, width, metrics.height() + 4);
        painter.setPen(Qt::NoPen);
        painter.setBrush(ground);
        painter.drawRoundedRect(box, 3, 3);
        painter.setPen(ink);
        painter.drawText(QPointF(box.left() + 6, box.top() + 2 + metrics.ascent()), text);
    };

    if (!state_.item.isEmpty()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme_.text, 1.5));
        painter.drawRoundedRect(state_.item.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
    }
    const QColor accent = theme_.accent;
    QColor tint = accent;
    if (!state_.box.isEmpty()) {
        tint.setAlphaF(0.16F);
        painter.setBrush(tint);
        painter.setPen(QPen(accent, 1));
        painter.drawRect(state_.box);
    }
    if (state_.span) {
        const QRectF span = *state_.span & lanes;
        tint.setAlphaF(0.12F);
        painter.fillRect(span, tint);
        painter.setPen(QPen(accent, 1.5));
        for (const double x : {state_.span->left(), state_.span->right()})
            if (x >= lanes.left() && x <= lanes.right()) painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()));
        if (!span.isEmpty()) chip(span.center().x(), lanes.top() + 6, state_.spanText, accent, theme_.accentText);
    }
    if (!state_.held.isEmpty()) {
        const QColor colour = state_.dropLegal ? accent : theme_.error;
        QColor fill = colour;
        fill.setAlphaF(0.25F);
        painter.setBrush(fill);
        painter.setPen(QPen(colour, 1.5, Qt::DashLine));
        painter.drawRoundedRect(state_.held, 3, 3);
        const double x = std::clamp(state_.drop.x(), lanes.left(), lanes.right());
        painter.setPen(QPen(colour, 4, Qt::SolidLine, Qt::RoundCap));
        painter.drawLine(QPointF(x, state_.drop.top() - 4), QPointF(x, state_.drop.bottom() + 4));
        if (!state_.dropText.isEmpty()) {
            const bool below = state_.drop.bottom() + metrics.height() + 14 <= lanes.bottom();
            const QString text = metrics.elidedText(state_.dropText, Qt::ElideRight, lanes.width() - 24);
            chip(x, below ? state_.drop.bottom() + 8 : state_.drop.top() - metrics.height() - 12, text, colour,
                 state_.dropLegal ? theme_.accentText : theme_.base);
        }
    }
    if (state_.cursor && *state_.cursor >= lanes.left() && *state_.cursor <= lanes.right()) {
        QColor line = theme_.cursor;
        line.setAlphaF(0.55F);
        painter.setPen(QPen(line, 1));
        const double x = std::floor(*state_.cursor) + 0.5;
        painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()));
        if (!state_.cursorText.isEmpty())
            chip(x, lanes.top() - metrics.height() - 5, state_.cursorText, theme_.cursor, theme_.base);
    }
    if (state_.focus) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(accent, 2));
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
    }
}

} // namespace stagecraft::ui
