// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/options.h"
#include "traces/base/expected.h"

#include <functional>
#include <string>

namespace stagecraft::desktop {

using Tell = std::function<void(const std::string&)>;

// Draws the timeline of a plan (simulated) or of a trace. Needs a QGuiApplication. What a reader of the picture must know
// of the trace (it is cut short, say) is told.
traces::Expected<void> render(const RenderCommand& command, const Tell& tell);

} // namespace stagecraft::desktop
