// SPDX-License-Identifier: GPL-3.0-or-later
//
// The timeline: ruler, lanes of all sources, selection, hand-off arrows. Its picture is kept as a pixmap and painted anew
// only when range, rows, data, selection or theme change; the line under the mouse and what it points at are a layer of
// their own.
//
//   wheel: zoom at the cursor · shift + wheel: up and down · drag: pan · ctrl + drag or right drag: zoom to a box ·
//   shift + drag: measure · click: select · double click: fit the block · keys: see keyHelp()
//   while blocks are moved (setMoving), a drag that begins on one that may be moved takes it to another place in its lane
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/block_mover.h"
#include "ui/timeline/hover_layer.h"
#include "ui/timeline/item_identity.h"
#include "ui/timeline/item_neighbours.h"
#include "ui/timeline/lane_layout.h"
#include "ui/timeline/shown_timeline.h"
#include "ui/timeline/timeline_item.h"
#include "ui/timeline/timeline_painter.h"
#include "ui/timeline/timeline_scene.h"

#include <QPixmap>
#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

class QPainter;
class QScrollBar;
class QToolButton;

namespace stagecraft::ui {

class SearchBar;
class TimelineSearch;

class TimelineWidget : public QWidget {
    Q_OBJECT
public:
    struct KeyHelp {
        QString keys; // "W S"
        QString what; // "zoom in, out"
    };
    static std::vector<KeyHelp> keyHelp();

    // The scene must outlive the widget.
    explicit TimelineWidget(TimelineScene& scene, QWidget* parent = nullptr);
    ~TimelineWidget() override;

    void setTheme(const Theme& theme);
    [[nodiscard]] const Theme& theme() const { return painter_.theme(); }
    // What to read where nothing is to be seen: a headline and what to do.
    void setEmptyText(const QString& headline, const QString& hint);

    [[nodiscard]] const TimelineItem& selection() const { return selection_; }
    void select(const TimelineItem& item);             // scrolls to it vertically
    void selectAndShow(const TimelineItem& item);      // and moves the axis where it is out of sight
    void goTo(const TimelineItem& item); // unfolds its rank and zooms as well, so that it can be told from its neighbours
    [[nodiscard]] const TimelineItem& hovered() const { return hovered_; }
    [[nodiscard]] std::optional<traces::Interval> measurement() const { return measurement_; }

    [[nodiscard]] bool following() const { return following_; }
    [[nodiscard]] bool criticalPath() const { return criticalPath_; }

    // Null, and from the start: no block can be moved. It must outlive the widget, or be taken away.
    void setMover(BlockMover* mover) { mover_ = mover; }
    [[nodiscard]] bool moving() const { return moving_; }
    [[nodiscard]] ShownTimeline shown() const;
    [[nodiscard]] const LaneLayout& laneLayout() const { return layout_; }
    [[nodiscard]] double headerWidth() const { return painter_.headerWidth(); } // plots below align with it
    [[nodiscard]] double rightMargin() const;                                 // room of the scroll bar
    [[nodiscard]] TimeMapping mapping() const; // shown time <-> x of this widget
    [[nodiscard]] TimelineItem itemAt(QPointF pos) const;

    [[nodiscard]] const TimelineSearch& search() const { return *search_; }

    [[nodiscard]] bool pictureIsCurrent() const { return pictureValid_; } // nothing asked for it to be painted anew

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

public slots:
    void setFollowing(bool following);
    void setCriticalPath(bool shown); // draws it over the lanes
    void setMoving(bool moving);      // a drag moves blocks
    void setHoverTime(std::optional<traces::TimeNs> shown); // the cursor of another view
    void setAllFolded(bool folded);
    void fitAll();
    void fitMeasurement();
    void fitSelection(); // fits all when nothing, or already the selection, is fitted
    void markSelection(); // measures the selected item; again: removes the measurement
    void selectNext();
    void selectPrevious();
    void followEdgeForward();
    void followEdgeBackward();
    void clearSelection();
    void openSearch();   // the field for it, with the focus
    void closeSearch();  // and the focus is the timeline's
    void findNext();     // of what the field says; opens it where it is closed
    void findPrevious();

signals:
    void selectionChanged(const stagecraft::ui::TimelineItem& item);
    // The selected item is the same, but there may be more to say of it: other sources, or a run that went on.
    void selectionGrew(const stagecraft::ui::TimelineItem& item);
    void hoverTimeChanged(std::optional<stagecraft::traces::TimeNs> shown);
    void measurementChanged(std::optional<stagecraft::traces::Interval> shown);
    void followingChanged(bool following);
    void criticalPathChanged(bool shown);
    void movingChanged(bool moving);

protected:
    bool event(QEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    enum class Drag : std::uint8_t { None, Pending, Pan, Box, Measure, Move };

    // A block that is being moved, and where it would fall.
    struct HeldBlock {
        TimelineItem item;
        std::uint32_t before = 0;
        BlockMover::Verdict verdict;
    };

    void relayout();
    void invalidate();
    void onDataChanged();
    void onSourcesChanged();
    void onAnalysed();
    void hoverAt(QPointF pos);
    void findSelectionAgain();
    void describeSelection();
    void setMeasurement(std::optional<traces::Interval> measurement);
    void scrollTo(const TimelineItem& item);
    void followNewest();
    void zoomBy(double factor);
    void panBy(double share); // of the view
    void stepTo(Direction direction);
    void stepAcross(Direction direction);
    void measureAlong(Direction direction);
    void foldByKey(bool all);
    void toggleFold(const RankGroup& group);
    void followEdge(int direction);
    bool toggleFoldAt(QPointF pos);
    void paintPicture();
    void paintEmptyState(QPainter& painter) const;
    void endDrag(QPointF pos);
    void cancelDrag();
    [[nodiscard]] bool mayMove(const TimelineItem& item) const;
    [[nodiscard]] traces::TimeNs shiftOf(const TimelineItem& item) const;
    void holdAt(QPointF pos);
    void dropHeld();
    void moveSelection(Direction direction);
    void describeHeld(HoverLayer::State& state, QPointF pos) const;
    void makeSearchBar();
    void placeChildren();
    void placeSearchBar();
    void showSearchResult();
    void find(Direction direction);
    [[nodiscard]] QRectF area() const; // without the scroll bar and the search bar
    [[nodiscard]] QRectF lanesRect() const;
    [[nodiscard]] double scroll() const;

    TimelineScene& scene_;
    TimelinePainter painter_;
    LaneLayout layout_;
    FoldedRanks folded_;
    TimelineItem selection_;
    ItemIdentity selected_; // what selection_ is, to find it again
    std::optional<ItemIdentity> awaited_; // a bubble that was selected in a step of which no bubbles are known yet
    TimelineItem hovered_;
    std::optional<traces::Interval> measurement_;
    std::optional<traces::TimeNs> otherHover_; // cursor of another view
    QString emptyHeadline_;
    QString emptyHint_;

    QPixmap picture_;
    bool pictureValid_ = false;
    bool following_ = false;
    bool criticalPath_ = false;
    BlockMover* mover_ = nullptr;
    bool moving_ = false;
    std::optional<HeldBlock> held_;
    Drag drag_ = Drag::None;
    QPointF pressPos_;
    QPointF lastPos_;
    bool mouseInside_ = false;
    Drag wanted_ = Drag::None; // what the pressed button and keys make of a drag

    HoverLayer* hover_;
    QScrollBar* scrollBar_;
    QToolButton* followButton_;
    TimelineSearch* search_;
    SearchBar* searchBar_;
    std::optional<Direction> searchWaits_; // to go to a match, until all has been looked at
};

} // namespace stagecraft::ui
