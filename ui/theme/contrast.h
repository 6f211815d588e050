// SPDX-License-Identifier: GPL-3.0-or-later
//
// Contrast of two colours after WCAG 2.1 (1.4.3): 1 for equal ones, 21 for black on white; text needs 4.5.
#pragma once

#include <QColor>

namespace stagecraft::ui {

double contrastRatio(const QColor& a, const QColor& b);

// The one of two inks that reads better on a ground.
QColor readableInk(const QColor& ground, const QColor& dark, const QColor& light);

// A colour between two: 0 gives `from`, 1 gives `to`.
QColor mixed(const QColor& from, const QColor& to, double share);

} // namespace stagecraft::ui
