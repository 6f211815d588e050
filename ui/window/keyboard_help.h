// SPDX-License-Identifier: GPL-3.0-or-later
//
// All keys on one page: those of the timeline, and those of the window.
#pragma once

#include <QDialog>

#include <utility>
#include <vector>

namespace stagecraft::ui {

class KeyboardHelp : public QDialog {
    Q_OBJECT
public:
    // (what, key) of the window's commands.
    explicit KeyboardHelp(const std::vector<std::pair<QString, QString>>& windowKeys, QWidget* parent = nullptr);
};

} // namespace stagecraft::ui
