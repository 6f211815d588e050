// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/options.h"
#include "traces/base/expected.h"

namespace stagecraft::desktop {

// Draws the curves of a sweep that stagecraft-cli sweep --json wrote. Needs a QGuiApplication.
traces::Expected<void> plot(const PlotCommand& command);

} // namespace stagecraft::desktop
