// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/options.h"
#include "traces/base/expected.h"

namespace stagecraft::desktop {

// Draws the timeline of a plan (simulated) or of a trace. Needs a QGuiApplication.
traces::Expected<void> render(const RenderCommand& command);

} // namespace stagecraft::desktop
