// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/sources.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"
#include "ui/window/file_kind.h"

namespace stagecraft::desktop {

bool namesTrace(const QString& file)
{
    return ui::fileKind(file, ui::FileKind::Plan) == ui::FileKind::Trace;
}

traces::Expected<engine::Plan> planOf(const QString& nameOrFile) { return engine::planNamed(ui::fromQt(nameOrFile)); }

} // namespace stagecraft::desktop
