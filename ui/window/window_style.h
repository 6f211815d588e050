// SPDX-License-Identifier: GPL-3.0-or-later
//
// The style of what only the window has: hints, problems beside controls, fold headers, the banner.
#pragma once

#include "ui/theme/theme.h"

#include <QString>

namespace stagecraft::ui {

QString windowStyle(const Theme& theme);

} // namespace stagecraft::ui
