// SPDX-License-Identifier: GPL-3.0-or-later
//
// The legend of the timeline's colours, as a line under it.
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
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const TimelineScene& scene_;
    Theme theme_;
    double left_ = 0;
    bool criticalPath_ = false;
};

} // namespace stagecraft::ui
