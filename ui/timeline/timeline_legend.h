// SPDX-License-Identifier: GPL-3.0-or-later
//
// The legend of the timeline's colours, above it: a line, or several where the window is narrow.
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/timeline_scene.h"

#include <QWidget>

namespace stagecraft::ui {

class TimelineLegend : public QWidget {
    Q_OBJECT
public:
    // The scene must outlive the widget.
    explicit TimelineLegend(const TimelineScene& scene, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void setLeftMargin(double left); // TimelineWidget's headerWidth()
    void setCriticalPath(bool shown);
    QSize sizeHint() const override; // as high as the entries need at this width

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    [[nodiscard]] QRectF box() const; // that the entries lie in
    void refresh();

    const TimelineScene& scene_;
    Theme theme_;
    double left_ = 0;
    bool criticalPath_ = false;
};

} // namespace stagecraft::ui
