// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the windows beside the main one are laid out: controls in a column on the left, what comes of them on the right.
//
//   layout->addWidget(besideControls(buildControls(), buildResult(), 260));
#pragma once

#include <initializer_list>

class QFormLayout;
class QSplitter;
class QWidget;

namespace stagecraft::ui {

// Its fields grow with the column.
QFormLayout* newControlForm();
// The form takes the room that the widgets below it leave.
QWidget* controlColumn(QFormLayout* form, std::initializer_list<QWidget*> below);
QSplitter* besideControls(QWidget* controls, QWidget* result, int controlsWidth);
// A timeline, and what tells of it in words.
QSplitter* aboveTable(QWidget* timeline, QWidget* table);

} // namespace stagecraft::ui
