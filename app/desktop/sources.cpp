// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/sources.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"
#include "ui/window/file_kind.h"

#include <QFileInfo>

#include <algorithm>

namespace stagecraft::desktop {

bool namesTrace(const QString& file)
{
    return ui::fileKind(file, ui::FileKind::Plan) == ui::FileKind::Trace;
}

bool namesPreset(const QString& name)
{
    const std::vector<engine::PresetPlan>& presets = engine::presetPlans();
    return std::any_of(presets.begin(), presets.end(), [&](const engine::PresetPlan& preset) { return ui::toQt(preset.name) == name; });
}

traces::Expected<engine::Plan> planOf(const QString& nameOrFile)
{
    if (QFileInfo::exists(nameOrFile)) return engine::loadPlan(ui::fromQt(nameOrFile));
    if (namesPreset(nameOrFile)) return engine::presetPlan(ui::fromQt(nameOrFile));
    QStringList names;
    for (const engine::PresetPlan& preset : engine::presetPlans()) names << ui::toQt(preset.name);
    return traces::Error{ui::fromQt(QStringLiteral("'%1' is neither a plan file nor a preset; give a file that exists, or one of: %2")
                                        .arg(nameOrFile, names.join(QStringLiteral(", "))))};
}

} // namespace stagecraft::desktop
