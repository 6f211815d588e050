// SPDX-License-Identifier: GPL-3.0-or-later
//
// Draws the window into a file and ends the program: at once, in the midst of a run, or when the run is over. How the
// README's pictures are made.
#pragma once

#include "app/desktop/options.h"

#include <QObject>
#include <QString>

class QWidget;

namespace stagecraft::ui {
class MainWindow;
}

namespace stagecraft::desktop {

class Screenshot : public QObject {
    Q_OBJECT
public:
    // The window must outlive it, be shown, and have the run started where one is wanted. `beside` is the window beside it that the
    // picture is of, once that has settled; null: the main one.
    Screenshot(ui::MainWindow& window, QWidget* beside, const WindowCommand& command);

private:
    void check();
    [[nodiscard]] bool stepIsHalfDone(int step) const;
    void take();
    void fail(const QString& text);

    ui::MainWindow& window_;
    QWidget* beside_;
    bool settled_ = false; // what is shown beside
    WindowCommand command_;
    QString failure_;
    bool done_ = false;
};

} // namespace stagecraft::desktop
