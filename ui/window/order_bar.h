// SPDX-License-Identifier: GPL-3.0-or-later
//
// The line over the timeline while the order is edited: what to do, whether deadlocks are kept, save, done.
#pragma once

#include <QWidget>

class QCheckBox;
class QLabel;

namespace stagecraft::ui {

class OrderEditor;

class OrderBar : public QWidget {
    Q_OBJECT
public:
    // The editor must outlive the bar.
    explicit OrderBar(OrderEditor& editor, QWidget* parent = nullptr);

    void say(const QString& text); // in place of the hint, until the next edit

signals:
    void saveWanted();
    void done();

private:
    QLabel* text_;
    QCheckBox* keep_;
};

} // namespace stagecraft::ui
