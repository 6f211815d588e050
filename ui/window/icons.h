// SPDX-License-Identifier: GPL-3.0-or-later
//
// The few pictures on buttons, drawn in the theme's colours at any resolution.
#pragma once

#include "ui/theme/theme.h"

#include <QIcon>

namespace stagecraft::ui {

enum class Symbol { Run, Pause, Stop, Follow, Measured, Program };

QIcon icon(Symbol symbol, const Theme& theme);

} // namespace stagecraft::ui
