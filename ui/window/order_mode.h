// SPDX-License-Identifier: GPL-3.0-or-later
//
// Editing the order on the timeline, as a mode of the window: what its action, its key and the bar over the timeline have to do
// with each other.
#pragma once

#include <QObject>

namespace stagecraft::ui {

class FileController;
class LogPanel;
class OrderBar;
class OrderEditor;
class PlanDocument;
class TimelineWidget;
struct WindowActions;

class OrderMode : public QObject {
    Q_OBJECT
public:
    struct Parts {
        TimelineWidget& timeline;
        OrderEditor& editor;
        OrderBar& bar;
        WindowActions& actions;
        FileController& files;
        LogPanel& log;
        PlanDocument& document;
    };
    // All parts must outlive it.
    OrderMode(const Parts& parts, QObject* parent);
};

} // namespace stagecraft::ui
