// SPDX-License-Identifier: GPL-3.0-or-later
//
// Plans and traces as the command line names them.
#pragma once

#include "engine/plan/plan.h"
#include "traces/base/expected.h"

#include <QString>

namespace stagecraft::desktop {

bool namesTrace(const QString& file); // by its content

// A plan file, or the name of a preset where there is no such file.
traces::Expected<engine::Plan> planOf(const QString& nameOrFile);

} // namespace stagecraft::desktop
