// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/dock_layout.h"

#include <QDockWidget>
#include <QMainWindow>

namespace stagecraft::ui {
namespace {

constexpr int kLabWidth = 320; // less cuts off the lab's tables

bool inFront(const QDockWidget& dock) { return !dock.visibleRegion().isEmpty(); }

} // namespace

DockLayout::DockLayout(QMainWindow& window) : window_(window)
{
    window_.setDockNestingEnabled(true);
    window_.setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
}

QDockWidget* DockLayout::add(const QString& title, const char* name, QWidget* content, Qt::DockWidgetArea area)
{
    auto* dock = new QDockWidget(title);
    dock->setObjectName(name);
    dock->setWidget(content);
    window_.addDockWidget(area, dock);
    return dock;
}

DockLayout::Columns DockLayout::columnsOf(int width)
{
    return width < kOneColumn ? Columns::One : width < kTwoColumns ? Columns::Two : Columns::Three;
}

DockLayout::Columns DockLayout::columns() const { return columnsOf(window_.width()); }

bool DockLayout::tabbed(QDockWidget* one, QDockWidget* other) const { return window_.tabifiedDockWidgets(one).contains(other); }

void DockLayout::arrange()
{
    const auto place = [this](QDockWidget* dock, Qt::DockWidgetArea area) {
        dock->setFloating(false);
        window_.addDockWidget(area, dock);
        dock->show();
    };
    place(panels_.lab, Qt::LeftDockWidgetArea);
    place(panels_.figures, Qt::RightDockWidgetArea);
    place(panels_.statistics, Qt::RightDockWidgetArea);
    place(panels_.selection, Qt::RightDockWidgetArea);
    arrangeSides();
    place(panels_.log, Qt::BottomDockWidgetArea);
    place(panels_.loss, Qt::BottomDockWidgetArea);
    window_.splitDockWidget(panels_.log, panels_.loss, Qt::Horizontal);
    place(panels_.waterfall, Qt::BottomDockWidgetArea);
    window_.tabifyDockWidget(panels_.log, panels_.waterfall);
    panels_.log->raise();
    window_.resizeDocks({panels_.log}, {90}, Qt::Vertical);
}

void DockLayout::arrangeSides()
{
    // Beside a column that takes half of a narrow window the log would be cut into words.
    window_.setCorner(Qt::BottomLeftCorner, columns() == Columns::One ? Qt::BottomDockWidgetArea : Qt::LeftDockWidgetArea);
    if (columns() == Columns::One) {
        window_.tabifyDockWidget(panels_.lab, panels_.figures);
        window_.tabifyDockWidget(panels_.figures, panels_.statistics);
        window_.tabifyDockWidget(panels_.statistics, panels_.selection);
        panels_.lab->raise();
        window_.resizeDocks({panels_.lab}, {kLabWidth}, Qt::Horizontal);
        return;
    }
    // Out of the tabs, if they are in any: a dock that is split off one stays among them.
    window_.addDockWidget(Qt::RightDockWidgetArea, panels_.figures);
    window_.addDockWidget(Qt::RightDockWidgetArea, panels_.statistics);
    window_.addDockWidget(Qt::RightDockWidgetArea, panels_.selection);
    if (columns() == Columns::Two) {
        window_.tabifyDockWidget(panels_.figures, panels_.statistics);
        window_.tabifyDockWidget(panels_.statistics, panels_.selection);
        panels_.figures->raise();
    } else {
        window_.splitDockWidget(panels_.figures, panels_.selection, Qt::Vertical);
        window_.tabifyDockWidget(panels_.figures, panels_.statistics);
        panels_.figures->raise();
        window_.resizeDocks({panels_.figures, panels_.selection}, {470, 190}, Qt::Vertical);
    }
    window_.resizeDocks({panels_.lab, panels_.figures}, {kLabWidth, columns() == Columns::Two ? 340 : 420}, Qt::Horizontal);
}

bool DockLayout::isArrangedFor(Columns columns) const
{
    const auto area = columns == Columns::One ? Qt::LeftDockWidgetArea : Qt::RightDockWidgetArea;
    for (QDockWidget* dock : {panels_.figures, panels_.statistics, panels_.selection})
        if (dock->isFloating() || window_.dockWidgetArea(dock) != area) return false;
    if (panels_.lab->isFloating() || window_.dockWidgetArea(panels_.lab) != Qt::LeftDockWidgetArea) return false;
    return tabbed(panels_.figures, panels_.statistics) && tabbed(panels_.figures, panels_.selection) == (columns != Columns::Three) &&
           tabbed(panels_.lab, panels_.figures) == (columns == Columns::One);
}

void DockLayout::widthChanged(int before, int now)
{
    if (columnsOf(before) != columnsOf(now) && isArrangedFor(columnsOf(before))) arrangeSides();
}

void DockLayout::showSelection(bool any)
{
    if (!any) {
        if (behindSelection_ && inFront(*panels_.selection)) behindSelection_->raise();
        behindSelection_ = nullptr;
        return;
    }
    if (inFront(*panels_.selection)) return;
    for (QDockWidget* dock : window_.tabifiedDockWidgets(panels_.selection))
        if (inFront(*dock)) behindSelection_ = dock;
    if (behindSelection_) panels_.selection->raise();
}

} // namespace stagecraft::ui
