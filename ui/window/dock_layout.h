// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the window's panels stand: as wide as the window is, in three columns, two or one. What the user put elsewhere stays
// there when the window becomes wider or narrower. The statistics lie behind the figures.
//
//   below kOneColumn           below kTwoColumns          wider
//   +-----------+---------+    +-----+--------+-------+   +-----+--------+---------+
//   |           | centre  |    |     | centre |       |   |     | centre | figures |
//   |           |         |    | lab |        |       |   | lab |        +---------+
//   |lab|fig|sel|         |    |     |        |       |   |     |        | select. |
//   +-----------+-+-------+    |     +--------+       |   |     +--------+         |
//   | log         | loss  |    |     |log|loss|fig|sel|   |     |log|loss|         |
//   +-------------+-------+    +-----+--------+-------+   +-----+--------+---------+
#pragma once

#include <Qt>

class QDockWidget;
class QMainWindow;
class QString;
class QWidget;

namespace stagecraft::ui {

class DockLayout {
public:
    static constexpr int kOneColumn = 1150;
    static constexpr int kTwoColumns = 1400;

    // The window must outlive it, and own the panels.
    explicit DockLayout(QMainWindow& window);

    QDockWidget* add(const QString& title, const char* name, QWidget* content, Qt::DockWidgetArea area);
    struct Panels {
        QDockWidget* lab;
        QDockWidget* figures;
        QDockWidget* statistics; // behind the figures
        QDockWidget* selection;
        QDockWidget* log;
        QDockWidget* loss;
        QDockWidget* waterfall; // behind the log
    };
    void setPanels(const Panels& panels) { panels_ = panels; }

    void arrange(); // as at first
    void widthChanged(int before, int now);
    // What is selected comes to the front; once nothing is, what was there before.
    void showSelection(bool any);

private:
    enum class Columns { One, Two, Three };
    [[nodiscard]] static Columns columnsOf(int width);
    [[nodiscard]] Columns columns() const;
    [[nodiscard]] bool tabbed(QDockWidget* one, QDockWidget* other) const;
    [[nodiscard]] bool isArrangedFor(Columns columns) const;
    void arrangeSides();

    QMainWindow& window_;
    Panels panels_{};
    QDockWidget* behindSelection_ = nullptr; // was in front of it
};

} // namespace stagecraft::ui
