// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/timeline_legend.h"

#include "ui/timeline/legend_painter.h"

#include <QPainter>

#include <cmath>

namespace stagecraft::ui {

TimelineLegend::TimelineLegend(const TimelineScene& scene, QWidget* parent)
    : QWidget(parent), scene_(scene), theme_(Theme::of(ThemeKind::Light))
{
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Colours of the timeline"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(&scene_, &TimelineScene::sourcesChanged, this, &TimelineLegend::refresh);
    connect(&scene_, &TimelineScene::dataChanged, this, &TimelineLegend::refresh);
}

void TimelineLegend::setTheme(const Theme& theme)
{
    theme_ = theme;
    update();
}

void TimelineLegend::setLeftMargin(double left)
{
    left_ = left;
    refresh();
}

void TimelineLegend::setCriticalPath(bool shown)
{
    criticalPath_ = shown;
    refresh();
}

QRectF TimelineLegend::box() const { return QRectF(rect()).adjusted(left_, 0, -4, 0); }

QSize TimelineLegend::sizeHint() const
{
    return {300, static_cast<int>(std::ceil(legendHeight(scene_, box().width(), font(), {.criticalPath = criticalPath_})))};
}

void TimelineLegend::resizeEvent(QResizeEvent*) { refresh(); }

void TimelineLegend::refresh()
{
    update();
    if (sizeHint().height() != height()) updateGeometry();
}

void TimelineLegend::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), theme_.base);
    if (!scene_.empty()) paintLegend(painter, scene_, box(), theme_, font(), {.criticalPath = criticalPath_});
}

} // namespace stagecraft::ui
