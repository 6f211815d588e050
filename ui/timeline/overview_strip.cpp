// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/overview_strip.h"

#include "ui/timeline/lane_canvas.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {
namespace {

constexpr double kEdge = 5;       // pixels on either side of the handle's edges that take hold of them
constexpr double kLeastHandle = 8;

} // namespace

OverviewStrip::OverviewStrip(TimelineScene& scene, QWidget* parent)
    : QWidget(parent), scene_(scene), theme_(Theme::of(ThemeKind::Light))
{
    setMouseTracking(true);
    setFocusPolicy(Qt::TabFocus);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Overview"));
    setAccessibleDescription(tr("The whole trace; the frame shows what the timeline below shows. Arrow keys move it."));
    setToolTip(tr("Drag the frame to move, its edges to zoom; click beside it to go there"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    const auto redraw = [this] {
        pictureValid_ = false;
        update();
    };
    connect(&scene_, &TimelineScene::sourcesChanged, this, redraw);
    connect(&scene_, &TimelineScene::dataChanged, this, redraw);
    connect(&scene_.axis(), &TimeAxis::rangeChanged, this, qOverload<>(&QWidget::update));
}

void OverviewStrip::setTheme(const Theme& theme)
{
    theme_ = theme;
    pictureValid_ = false;
    update();
}

void OverviewStrip::setMargins(double left, double right)
{
    left_ = left;
    right_ = right;
    pictureValid_ = false;
    update();
}

QSize OverviewStrip::sizeHint() const { return {600, 46}; }
QSize OverviewStrip::minimumSizeHint() const { return {200, 34}; }

QRectF OverviewStrip::strip() const
{
    return QRectF(left_, 5, std::max(1.0, width() - left_ - right_), std::max(1.0, height() - 10.0));
}

TimeMapping OverviewStrip::mapping() const
{
    const traces::Interval limits = scene_.axis().limits();
    const QRectF box = strip();
    const double length = static_cast<double>(limits.length());
    const double margin = TimeAxis::kFitMargin * length;
    return {TimeRange{limits.begin, -margin, length + 2 * margin}, box.left(), box.width()};
}

QRectF OverviewStrip::handle() const
{
    const TimeMapping map = mapping();
    const TimeRange& seen = scene_.axis().range();
    const QRectF box = strip();
    // Of the double range, not of whole nanoseconds: a deep zoom still has a place.
    const double begin = map.x(seen.origin) + seen.begin / map.nsPerPixel();
    double left = std::clamp(begin, box.left(), box.right() - kLeastHandle);
    const double right = std::clamp(begin + seen.length / map.nsPerPixel(), left, box.right());
    const double width = std::max(right - left, kLeastHandle);
    left = std::min(left, box.right() - width);
    return {left, box.top(), width, box.height()};
}

OverviewStrip::Part OverviewStrip::partAt(QPointF pos) const
{
    if (!strip().adjusted(-kEdge, -5, kEdge, 5).contains(pos)) return Part::None;
    const QRectF frame = handle();
    const double grip = std::min(kEdge, frame.width() / 4);
    if (std::abs(pos.x() - frame.left()) <= grip || (pos.x() < frame.left() && pos.x() >= frame.left() - kEdge)) return Part::LeftEdge;
    if (std::abs(pos.x() - frame.right()) <= grip || (pos.x() > frame.right() && pos.x() <= frame.right() + kEdge)) return Part::RightEdge;
    return pos.x() > frame.left() && pos.x() < frame.right() ? Part::Inside : Part::Beside;
}

// One line per lane that computes, all of them in the strip's height.
void OverviewStrip::paintPicture()
{
    const double ratio = devicePixelRatioF();
    const QRectF box = strip();
    const QSize pixels = (box.size() * ratio).toSize();
    picture_ = QImage(pixels, QImage::Format_RGB32);
    picture_.fill(theme_.base);
    pictureValid_ = true;
    struct Line {
        int source;
        const traces::Lane* lane;
    };
    std::vector<Line> lines;
    for (int source = 0; source < scene_.sourceCount(); ++source)
        for (const traces::Lane& lane : scene_.trace(source).lanes())
            if (lane.info().kind != traces::LaneKind::Transfer) lines.push_back({source, &lane});
    if (lines.empty() || pixels.isEmpty()) return;

    const TimeMapping map(mapping().range(), 0, pixels.width());
    const double height = static_cast<double>(pixels.height()) / static_cast<double>(lines.size());
    LaneSweep sweep;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const int top = static_cast<int>(std::lround(static_cast<double>(i) * height));
        int bottom = static_cast<int>(std::lround(static_cast<double>(i + 1) * height));
        if (bottom <= top) continue; // more lanes than lines of pixels: some of them stand for their neighbours
        if (bottom - top > 2) --bottom;
        const LaneStyle style(theme_, scene_.trace(lines[i].source).info);
        sweep.clear(pixels.width());
        for (const Segment& segment : scene_.segments(lines[i].source)) sweep.run(*lines[i].lane, segment, map, style);
        const std::vector<QRgb> row = LaneCanvas::composeRow(sweep, style, theme_.lane.rgb());
        for (int y = top; y < bottom; ++y) std::copy(row.begin(), row.end(), reinterpret_cast<QRgb*>(picture_.scanLine(y)));
    }
    picture_.setDevicePixelRatio(ratio);
}

void OverviewStrip::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.fillRect(rect(), theme_.base);
    if (scene_.empty()) return;
    if (!pictureValid_) paintPicture();
    const QRectF box = strip();
    painter.drawImage(box.topLeft(), picture_);

    const QRectF frame = handle();
    QColor veil = theme_.base;
    veil.setAlphaF(0.62F);
    painter.fillRect(QRectF(box.left(), box.top(), frame.left() - box.left(), box.height()), veil);
    painter.fillRect(QRectF(frame.right(), box.top(), box.right() - frame.right(), box.height()), veil);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(hasFocus() ? theme_.accent : theme_.mutedText, hasFocus() ? 2 : 1.2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(frame.adjusted(0, -2, 0, 2), 3, 3);
    if (frame.width() > 24) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(hasFocus() ? theme_.accent : theme_.mutedText);
        for (const double x : {frame.left(), frame.right()})
            painter.drawRoundedRect(QRectF(x - 2.5, frame.center().y() - 9, 5, 18), 2.5, 2.5);
    }
    if (drag_ == Part::Beside) {
        QColor tint = theme_.accent;
        tint.setAlphaF(0.2F);
        painter.fillRect(QRectF(QPointF(pressX_, box.top()), QPointF(lastX_, box.bottom())).normalized() & box, tint);
    }
}

void OverviewStrip::resizeEvent(QResizeEvent*)
{
    pictureValid_ = false;
}

bool OverviewStrip::event(QEvent* event)
{
    if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) update();
    return QWidget::event(event);
}

void OverviewStrip::mousePressEvent(QMouseEvent* event)
{
    if (scene_.empty()) return;
    const Part part = partAt(event->position());
    if (part == Part::None) return;
    const bool fresh = event->button() == Qt::RightButton || (event->modifiers() & Qt::ControlModifier);
    drag_ = fresh ? Part::Beside : part;
    pressX_ = lastX_ = event->position().x();
    pressRange_ = scene_.axis().range();
}

void OverviewStrip::mouseMoveEvent(QMouseEvent* event)
{
    const TimeMapping map = mapping();
    const double x = event->position().x();
    TimeAxis& axis = scene_.axis();
    switch (drag_) {
    case Part::None:
        switch (partAt(event->position())) {
        case Part::LeftEdge:
        case Part::RightEdge: setCursor(Qt::SizeHorCursor); break;
        case Part::Inside: setCursor(Qt::OpenHandCursor); break;
        default: unsetCursor();
        }
        return;
    case Part::Inside: axis.pan((x - lastX_) * map.nsPerPixel()); break;
    case Part::LeftEdge:
    case Part::RightEdge: {
        // The other edge holds still.
        const bool left = drag_ == Part::LeftEdge;
        const double pressed = pressRange_.length;
        const double change = (x - pressX_) * map.nsPerPixel();
        const double wanted = std::max(TimeAxis::kShortest, left ? pressed - change : pressed + change);
        const traces::TimeNs anchor = left ? pressRange_.last() : pressRange_.first();
        emit axis.moved(); // an edge that is dragged chooses a part, even if a run goes on beyond it
        axis.zoom(wanted / axis.range().length, anchor);
        break;
    }
    case Part::Beside: update(); break;
    }
    lastX_ = x;
}

void OverviewStrip::mouseReleaseEvent(QMouseEvent* event)
{
    if (drag_ == Part::Beside) {
        const TimeMapping map = mapping();
        const double x = event->position().x();
        TimeAxis& axis = scene_.axis();
        if (std::abs(x - pressX_) >= 4) {
            axis.setRange({map.time(std::min(x, pressX_)), map.time(std::max(x, pressX_))});
        } else {
            const TimeRange& range = axis.range();
            axis.pan(range.at(map.time(x)) - range.length / 2);
        }
    }
    drag_ = Part::None;
    update();
}

void OverviewStrip::mouseDoubleClickEvent(QMouseEvent*)
{
    scene_.axis().fitAll();
}

void OverviewStrip::wheelEvent(QWheelEvent* event)
{
    event->accept();
    if (scene_.empty() || event->angleDelta().y() == 0) return;
    scene_.axis().zoom(std::pow(0.8, event->angleDelta().y() / 120.0), mapping().time(event->position().x()));
}

void OverviewStrip::keyPressEvent(QKeyEvent* event)
{
    TimeAxis& axis = scene_.axis();
    const double length = axis.range().length;
    switch (event->key()) {
    case Qt::Key_Left: axis.pan(-length / 8); break;
    case Qt::Key_Right: axis.pan(length / 8); break;
    case Qt::Key_Up:
    case Qt::Key_Plus: axis.zoom(0.7, axis.range().first() + static_cast<traces::TimeNs>(length / 2)); break;
    case Qt::Key_Down:
    case Qt::Key_Minus: axis.zoom(1 / 0.7, axis.range().first() + static_cast<traces::TimeNs>(length / 2)); break;
    case Qt::Key_0: axis.fitAll(); break;
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace stagecraft::ui
