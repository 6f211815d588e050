// SPDX-License-Identifier: GPL-3.0-or-later
//
// Everything there is in a thin strip, with a handle over the part that the timeline shows: drag it to pan, drag its edges
// to zoom, click beside it to go there, drag with the right button (or ctrl) to choose a new part.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QImage>
#include <QWidget>

namespace stagecraft::ui {

class OverviewStrip : public QWidget {
    Q_OBJECT
public:
    // The scene must outlive the widget.
    explicit OverviewStrip(TimelineScene& scene, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void setMargins(double left, double right); // TimelineWidget's headerWidth() and rightMargin(), to align with it
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    enum class Part : std::uint8_t { None, LeftEdge, RightEdge, Inside, Beside };

    [[nodiscard]] QRectF strip() const;
    [[nodiscard]] TimeMapping mapping() const; // of everything
    [[nodiscard]] QRectF handle() const;
    [[nodiscard]] Part partAt(QPointF pos) const;
    void paintPicture();

    TimelineScene& scene_;
    Theme theme_;
    double left_ = 0;
    double right_ = 0;
    QImage picture_;
    bool pictureValid_ = false;
    Part drag_ = Part::None;
    double pressX_ = 0;
    double lastX_ = 0;
    TimeRange pressRange_;
};

} // namespace stagecraft::ui
