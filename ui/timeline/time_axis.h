// SPDX-License-Identifier: GPL-3.0-or-later
//
// The one time axis that the timeline, the overview and the plots share: the limits of what there is, the range that is
// seen, and the ranges seen before. Shown times start at 0 (TimelineScene maps each trace onto them). Lives in the GUI
// thread.
//
//   TimeAxis axis;
//   axis.setLimits({0, 77'000'000});        // a new axis shows all of it
//   axis.zoom(0.5, 20'000'000);             // twice as close, 20 ms stays where it is
//   connect(&axis, &TimeAxis::rangeChanged, plot, ...);
#pragma once

#include "ui/timeline/time_mapping.h"

#include <QObject>

#include <vector>

namespace stagecraft::ui {

class TimeAxis : public QObject {
    Q_OBJECT
public:
    static constexpr double kShortest = 20;     // ns: the closest view
    static constexpr double kFitMargin = 0.015; // of the length, left free at both ends of a fitted view

    explicit TimeAxis(QObject* parent = nullptr);

    // What there is to see. A view that showed all goes on showing all; any other stays, as far as it still fits.
    void setLimits(traces::Interval limits);
    [[nodiscard]] traces::Interval limits() const { return limits_; }

    [[nodiscard]] const TimeRange& range() const { return range_; }
    [[nodiscard]] TimeMapping mapping(double left, double width) const { return {range_, left, width}; }
    [[nodiscard]] bool showsAll() const { return showsAll_; }

    void showAll(); // of something new: forgets the history

    // Steps that one can go back from, each on its own.
    void fitAll();
    void fit(traces::Interval interval); // with the margin
    void setRange(traces::Interval interval);

    // Parts of one gesture: those without a step in between are one entry of the history.
    void zoom(double factor, traces::TimeNs anchor); // below 1: closer; the anchor keeps its place
    void pan(double ns);
    // The newest moment near the right end of a view of this length (ns); never in the history.
    void follow(traces::TimeNs newest, double length);

    [[nodiscard]] bool canGoBack() const { return !past_.empty(); }
    [[nodiscard]] bool canGoForward() const { return !future_.empty(); }
    void back();
    void forward();

signals:
    void rangeChanged();
    void moved(); // to another place, by anything but a zoom, follow() or new limits
    void historyChanged();

private:
    struct View {
        TimeRange range;
        bool showsAll = true;
    };
    enum class Gesture : std::uint8_t { None, Continuous };

    void remember(Gesture gesture);
    void show(TimeRange range, bool showsAll);
    [[nodiscard]] TimeRange clamped(TimeRange range) const;
    [[nodiscard]] TimeRange fitted(traces::Interval interval) const;

    traces::Interval limits_{0, 1'000'000};
    TimeRange range_;
    bool showsAll_ = true;
    Gesture gesture_ = Gesture::None;
    std::vector<View> past_;
    std::vector<View> future_;
};

} // namespace stagecraft::ui
