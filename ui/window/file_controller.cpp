// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/file_controller.h"

#include "engine/plan/plan_json.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/export/timeline_export.h"
#include "ui/window/workbench.h"

#include <QFileInfo>

namespace stagecraft::ui {

using traces::Error;
using traces::Expected;

namespace {

bool isPlanFile(const QString& file) { return file.endsWith(".plan.json", Qt::CaseInsensitive); }

} // namespace

FileController::FileController(Workbench& workbench, QSettings& settings, FileDialogs dialogs, QObject* parent)
    : QObject(parent), workbench_(workbench), dialogs_(std::move(dialogs)), recent_(settings)
{
}

bool FileController::report(const Expected<void>& done, const QString& title, const QString& noteIfDone)
{
    if (done.ok()) {
        emit note(noteIfDone);
        return true;
    }
    const QString text = toQt(done.error().message);
    emit problem(text);
    dialogs_.tellProblem(title, text);
    return false;
}

bool FileController::mayDiscard()
{
    if (!workbench_.document().modified()) return true;
    switch (dialogs_.unsaved(workbench_.document().title())) {
    case UnsavedAnswer::Save: return save();
    case UnsavedAnswer::Discard: return true;
    case UnsavedAnswer::Cancel: break;
    }
    return false;
}

bool FileController::startFromPreset(const QString& name)
{
    if (!mayDiscard()) return false;
    Expected<engine::Plan> plan = engine::presetPlan(fromQt(name));
    if (!plan.ok()) return report(plan.error(), tr("New plan"), {});
    workbench_.document().startFrom(std::move(plan).value());
    emit note(tr("New plan from the preset %1.").arg(name));
    return true;
}

bool FileController::openPlan()
{
    const QString file = dialogs_.openFile(tr("Open plan"), tr("Plans (*.plan.json);;All files (*)"));
    return !file.isEmpty() && open(file);
}

bool FileController::openTrace()
{
    const QString file = dialogs_.openFile(tr("Open trace"), tr("Traces (*.strace *.json *.json.gz);;All files (*)"));
    return !file.isEmpty() && open(file);
}

bool FileController::open(const QString& file)
{
    const bool plan = isPlanFile(file) || !(file.endsWith(".strace") || file.endsWith(".json") || file.endsWith(".gz"));
    if (plan && !mayDiscard()) return false;
    if (!QFileInfo::exists(file)) recent_.remove(file);
    const Expected<void> opened = plan ? workbench_.document().open(file) : workbench_.openTrace(file);
    if (opened.ok()) recent_.add(file);
    return report(opened, plan ? tr("Open plan") : tr("Open trace"), tr("Opened %1.").arg(file));
}

bool FileController::save()
{
    if (workbench_.document().file().isEmpty()) return saveAs();
    return report(workbench_.document().save(), tr("Save plan"), tr("Saved %1.").arg(workbench_.document().file()));
}

bool FileController::saveAs()
{
    const QString file = dialogs_.saveFile(tr("Save plan"), tr("Plans (*.plan.json)"), suggestedName(".plan.json"));
    if (file.isEmpty()) return false;
    const Expected<void> saved = workbench_.document().saveAs(file);
    if (saved.ok()) recent_.add(file);
    return report(saved, tr("Save plan"), tr("Saved %1.").arg(file));
}

QString FileController::suggestedName(const QString& ending) const
{
    const engine::Plan& plan = workbench_.document().plan();
    return (plan.name.empty() ? QStringLiteral("pipeline") : toQt(plan.name)) + ending;
}

bool FileController::exportPicture(PictureExtent extent, const Theme& theme, const FoldedRanks& folded)
{
    const QString file = dialogs_.saveFile(extent == PictureExtent::Whole ? tr("Export the whole timeline") : tr("Export the timeline as shown"),
                                           tr("PNG picture (*.png);;SVG drawing (*.svg);;PDF document (*.pdf)"), suggestedName(".png"));
    if (file.isEmpty()) return false;
    return report(writePicture(file, extent, theme, folded), tr("Export"), tr("Wrote %1.").arg(file));
}

bool FileController::exportTrace()
{
    const QString file = dialogs_.saveFile(tr("Export the trace"),
                                           tr("Chrome trace, for Perfetto (*.json);;Chrome trace, compressed (*.json.gz);;Table of actions "
                                              "(*.csv);;Stagecraft trace (*.strace)"),
                                           suggestedName(".json"));
    if (file.isEmpty()) return false;
    return report(writeTrace(file), tr("Export"), tr("Wrote %1.").arg(file));
}

Expected<void> FileController::writePicture(const QString& file, PictureExtent extent, const Theme& theme, const FoldedRanks& folded) const
{
    const TimelineScene& scene = workbench_.scene();
    if (scene.empty()) return Error{"there is no timeline to draw yet"};
    ExportOptions options;
    options.theme = theme;
    options.arrangement = scene.arrangement();
    options.folded = folded;
    if (extent == PictureExtent::AsShown) {
        const TimeRange& range = scene.axis().range();
        options.range = traces::Interval{range.first(), range.last()};
    }
    return exportTimeline(scene.sources(), options, file);
}

Expected<void> FileController::writeTrace(const QString& file) const
{
    // What a run or a file gave is worth more than what can be simulated again; unless only the simulation is shown.
    const bool other = workbench_.other() && workbench_.view() != ViewKind::SimulatedOnly;
    const std::shared_ptr<const traces::Trace>& trace = other ? workbench_.other() : workbench_.simulation().simulation().trace;
    if (!trace) return Error{"there is no trace to write yet"};
    return traces::saveTrace(*trace, fromQt(file));
}

} // namespace stagecraft::ui
