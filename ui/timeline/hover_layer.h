// SPDX-License-Identifier: GPL-3.0-or-later
//
// What moves with the mouse, over the timeline's picture: cursor line, what it points at, a box or a span being drawn.
// Takes no mouse events itself.
#pragma once

#include "ui/theme/theme.h"

#include "traces/base/units.h"

#include <QRectF>
#include <QWidget>

#include <optional>

namespace stagecraft::ui {

class HoverLayer : public QWidget {
    Q_OBJECT
public:
    struct State {
        QRectF lanes;                 // where it may paint
        std::optional<double> cursor; // x
        QString cursorText;           // its time
        QRectF item;                  // outline; empty: none
        QRectF box;                   // zoom box; empty: none
        std::optional<QRectF> span;   // measured span
        QString spanText;
        QRectF held;                  // a block that is being moved; empty: none
        QRectF drop;                  // where it would fall: a line, as high as its lane
        bool dropLegal = true;
        QString dropText;             // what is said of that
        bool focus = false;           // ring around the timeline

        bool operator==(const State&) const = default;
    };

    explicit HoverLayer(QWidget* parent);
    void setTheme(const Theme& theme);
    void setState(const State& state); // repaints when it differs
    [[nodiscard]] const State& state() const { return state_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme theme_;
    State state_;
};

} // namespace stagecraft::ui
