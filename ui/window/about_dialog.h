// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QWidget;

namespace stagecraft::ui {

// Version, licence of the program and of what it is made with.
void showAbout(QWidget* parent);

} // namespace stagecraft::ui
