// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/plot.h"

#include "engine/explain/sweep_files.h"
#include "traces/format/input_file.h"
#include "ui/bridge/text.h"
#include "ui/export/plot_export.h"

#include <iostream>
#include <iterator>

namespace stagecraft::desktop {

using traces::Expected;

Expected<void> plot(const PlotCommand& command)
{
    const bool piped = command.sweep == QLatin1String("-");
    const Expected<std::string> text = piped ? Expected<std::string>(std::string(std::istreambuf_iterator<char>(std::cin), {}))
                                             : traces::readWholeFile(ui::fromQt(command.sweep));
    if (!text.ok()) return text.error();
    const Expected<engine::Sweep> sweep = engine::readSweep(text.value());
    if (!sweep.ok()) return piped ? sweep.error() : sweep.error().in(ui::fromQt(command.sweep));
    return ui::exportSweep(sweep.value(),
                           {.figures = command.figures, .theme = ui::Theme::of(command.theme.value_or(ui::ThemeKind::Light)), .width = command.width},
                           command.out);
}

} // namespace stagecraft::desktop
