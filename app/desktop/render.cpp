// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/render.h"

#include "app/desktop/sources.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/export/timeline_export.h"
#include "ui/window/simulation_controller.h"

namespace stagecraft::desktop {

using traces::Expected;

namespace {

Expected<std::shared_ptr<const traces::Trace>> traceOf(const QString& source, const Tell& tell)
{
    if (namesTrace(source)) {
        Expected<traces::Trace> trace = traces::loadTrace(ui::fromQt(source));
        if (!trace.ok()) return trace.error();
        for (const std::string& caveat : traces::caveatsOf(trace.value())) tell(ui::fromQt(source) + ": " + caveat);
        return std::make_shared<const traces::Trace>(std::move(trace).value());
    }
    const Expected<engine::Plan> plan = planOf(source);
    if (!plan.ok()) return plan.error();
    Expected<ui::Simulation> simulation = ui::simulatePlan(plan.value());
    if (!simulation.ok()) return simulation.error();
    return simulation.value().trace;
}

} // namespace

Expected<void> render(const RenderCommand& command, const Tell& tell)
{
    const Expected<std::shared_ptr<const traces::Trace>> trace = traceOf(command.source, tell);
    if (!trace.ok()) return trace.error();
    ui::ExportOptions options;
    options.width = command.width;
    options.scale = command.scale;
    if (command.step) options.step = traces::Step{*command.step};
    options.from = command.from;
    options.to = command.to;
    options.theme = ui::Theme::of(command.theme.value_or(ui::ThemeKind::Light));
    return ui::exportTimeline({ui::TraceSource{trace.value(), {}, false}}, options, command.out);
}

} // namespace stagecraft::desktop
