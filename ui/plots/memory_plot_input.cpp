// SPDX-License-Identifier: GPL-3.0-or-later
//
// The mouse in the memory plot: it moves the time axis, and its place is told with the values of all curves there.
#include "ui/plots/memory_plot.h"

#include <QEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <qcustomplot.h>

#include <cmath>

namespace stagecraft::ui {

using traces::TimeNs;

void MemoryPlot::placeCursor()
{
    cursor_->setVisible(hoverTime_.has_value() && !curves_.empty());
    if (!cursor_->visible()) return;
    const double x = std::floor(mapping().x(*hoverTime_)) + 0.5; // the middle of a pixel, as the timeline has it
    cursor_->point1->setCoords(x, 0);
    cursor_->point2->setCoords(x, 1);
}

void MemoryPlot::showHover()
{
    placeCursor();
    for (std::size_t i = 0; i < curves_.size(); ++i) {
        Curve& curve = curves_[i];
        QString name = curve.name;
        if (cursor_->visible()) {
            const TimeNs t = *hoverTime_ - shift();
            std::int64_t value = curve.sum->at(t);
            if (stacked_ && i > 0) value -= curves_[i - 1].sum->at(t); // curves of a stack hold the sum below them too
            name += QStringLiteral("  ") + valueText(value);
        }
        curve.graph->setName(name);
    }
}

void MemoryPlot::setHoverTime(std::optional<TimeNs> shown)
{
    if (shown == hoverTime_) return;
    hoverTime_ = shown;
    showHover();
    wrapLegend();
    replot();
}

bool MemoryPlot::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != plot_) return QWidget::eventFilter(watched, event);
    const auto timeAt = [this](double x) { return mapping().time(x); };
    const auto inside = [this](QPointF pos) { return plot_->axisRect()->rect().contains(pos.toPoint()) && !scene_.empty(); };
    switch (event->type()) {
    case QEvent::Wheel: {
        auto* wheel = static_cast<QWheelEvent*>(event);
        if (wheel->angleDelta().y() != 0)
            scene_.axis().zoom(std::pow(0.8, wheel->angleDelta().y() / 120.0), timeAt(wheel->position().x()));
        return true;
    }
    case QEvent::MouseButtonPress: {
        auto* mouse = static_cast<QMouseEvent*>(event);
        panning_ = mouse->button() == Qt::LeftButton && inside(mouse->position());
        panX_ = mouse->position().x();
        emit pressed();
        return true;
    }
    case QEvent::MouseMove: {
        auto* mouse = static_cast<QMouseEvent*>(event);
        const double x = mouse->position().x();
        if (panning_) {
            scene_.axis().pan((panX_ - x) * mapping().nsPerPixel());
            panX_ = x;
        }
        const auto time = inside(mouse->position()) ? std::optional(timeAt(x)) : std::nullopt;
        setHoverTime(time);
        emit hoverTimeChanged(time);
        return true;
    }
    case QEvent::MouseButtonRelease: panning_ = false; return true;
    case QEvent::MouseButtonDblClick: scene_.axis().fitAll(); return true;
    case QEvent::Leave:
        setHoverTime(std::nullopt);
        emit hoverTimeChanged(std::nullopt);
        return false;
    default: return QWidget::eventFilter(watched, event);
    }
}

} // namespace stagecraft::ui
