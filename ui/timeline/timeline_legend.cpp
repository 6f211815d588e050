// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_legend.h"

#include "ui/timeline/legend_painter.h"

#include <QPainter>

namespace stagecraft::ui {

TimelineLegend::TimelineLegend(const TimelineScene& scene, QWidget* parent)
    : QWidget(parent), scene_(scene), theme_(Theme::of(ThemeKind::Light))
{
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Colours of the timeline"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(&scene_, &TimelineScene::sourcesChanged, this, qOverload<>(&QWidget::update));
    connect(&scene_, &TimelineScene::dataChanged, this, qOverload<>(&QWidget::update));
}

void TimelineLegend::setTheme(const Theme& theme)
{
    theme_ = theme;
    update();
}

void TimelineLegend::setLeftMargin(double left)
{
    left_ = left;
    update();
}

void TimelineLegend::setCriticalPath(bool shown)
{
    criticalPath_ = shown;
    update();
}

QSize TimelineLegend::sizeHint() const { return {300, fontMetrics().height() + 6}; }

void TimelineLegend::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), theme_.base);
    if (!scene_.empty()) paintLegend(painter, scene_, QRectF(rect()).adjusted(left_, 0, -4, 0), theme_, font(), {.criticalPath = criticalPath_});
}

} // namespace stagecraft::ui
