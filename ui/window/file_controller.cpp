// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/file_controller.h"

#include "engine/plan/plan_json.h"
#include "traces/format/input_file.h"
#include "traces/format/output_file.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/export/timeline_export.h"

#include <QFileInfo>

namespace stagecraft::ui {

using traces::Error;
using traces::Expected;

FileController::FileController(Workbench& workbench, QSettings& settings, FileDialogs dialogs, QObject* parent)
    : QObject(parent), workbench_(workbench), dialogs_(std::move(dialogs)), recent_(settings)
{
    connect(&lane_, &JobLane::busyChanged, this, &FileController::workChanged);
    connect(&lane_, &JobLane::progressed, this, [this](double fraction) {
        progress_ = fraction;
        emit workChanged();
    });
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
    switch (dialogs_.unsaved(tr("Save the changes of \"%1\"?").arg(workbench_.document().title()))) {
    case UnsavedAnswer::Save: return save();
    case UnsavedAnswer::Discard: return true;
    case UnsavedAnswer::Cancel: break;
    }
    return false;
}

// "the changes of "mine", the run of hello, which still goes on, and the run of mlp"
QString FileController::lossText(bool plan, const std::vector<KeptRun>& runs) const
{
    QStringList parts;
    if (plan) parts << tr("the changes of \"%1\"").arg(workbench_.document().title());
    for (const KeptRun& run : runs)
        parts << (workbench_.goesOn(run) ? tr("the %1, which still goes on and is stopped first") : tr("the %1")).arg(run.label);
    const QString last = parts.takeLast();
    return parts.isEmpty() ? last : tr("%1; and %2").arg(parts.join(QStringLiteral("; ")), last);
}

bool FileController::asksForRunFiles(const std::vector<KeptRun>& runs)
{
    std::vector<RunFile> files;
    for (const KeptRun& run : runs) {
        const QString file = askForTraceFile(tr("Save the %1").arg(run.label));
        if (file.isEmpty()) return false;
        files.push_back({file, run.trace});
    }
    runFiles_ = std::move(files);
    return true;
}

FileController::Quit FileController::mayQuit()
{
    const bool plan = workbench_.document().modified();
    const std::vector<KeptRun> runs = workbench_.unsavedRuns();
    if (plan || !runs.empty()) {
        const UnsavedAnswer answer = dialogs_.unsaved(tr("Save %1?").arg(lossText(plan, runs)));
        if (answer == UnsavedAnswer::Cancel) return Quit::No;
        if (answer == UnsavedAnswer::Save) {
            if (plan && !save()) return Quit::No;
            if (!runs.empty()) {
                if (!mayClose() || !asksForRunFiles(runs)) return Quit::No;
                writeRuns();
                return Quit::WhenWritten;
            }
        }
    }
    // One that has nothing to save yet.
    const bool preparing = workbench_.run().active() && workbench_.run().trace() && workbench_.run().trace()->sliceCount() == 0;
    if (preparing && !dialogs_.giveUp(tr("The %1 still goes on. Stop it?").arg(workbench_.run().label()))) return Quit::No;
    return mayClose() ? Quit::Yes : Quit::No;
}

void FileController::writeRuns()
{
    if (runFiles_.empty()) return;
    RunController& run = workbench_.run();
    if (run.active() && runFiles_.front().trace == run.trace()) {
        // It is written whole: each change of its state asks anew whether it has ended.
        connect(&run, &RunController::stateChanged, this, &FileController::writeRuns, Qt::ConnectionType(Qt::QueuedConnection | Qt::SingleShotConnection));
        if (run.state() != engine::SessionState::Stopping) run.stop();
        return;
    }
    const RunFile next = runFiles_.front();
    runFiles_.erase(runFiles_.begin());
    if (!writeTraceTo(next.file, next.trace, [this] { writeRuns(); })) runFiles_.clear();
}

bool FileController::openSchedule()
{
    const QString title = tr("Open schedule");
    const QString file = dialogs_.openFile(title, tr("Schedules (*.csv *.txt *.schedule);;All files (*)"));
    if (file.isEmpty()) return false;
    Expected<std::string> text = traces::readWholeFile(fromQt(file));
    if (!text.ok()) return report(text.error(), title, {});
    Expected<engine::Plan> plan = withCustomSchedule(workbench_.document().plan(), std::move(text).value());
    if (!plan.ok()) return report(plan.error().in(fromQt(file)), title, {});
    workbench_.document().edit(std::move(plan).value(), tr("schedule from a file"));
    return report({}, title, tr("The schedule is that of %1.").arg(file));
}

bool FileController::saveSchedule()
{
    const QString title = tr("Save schedule");
    const std::shared_ptr<const engine::Schedule> schedule = workbench_.simulation().simulation().schedule;
    if (!schedule || !workbench_.simulation().problem().isEmpty()) return report(Error{fromQt(tr("The plan has no schedule that could be written."))}, title, {});
    const QString file = dialogs_.saveFile(title, tr("Schedules (*.csv)"), suggestedName(QStringLiteral(".csv")));
    if (file.isEmpty()) return false;
    return report(traces::writeWholeFile(fromQt(file), toText(*schedule)), title, tr("The schedule is written to %1.").arg(file));
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
    const QString file = dialogs_.openFile(tr("Open plan"), tr("Plans (*.plan.json *.json);;All files (*)"));
    return !file.isEmpty() && open(file, FileKind::Plan);
}

bool FileController::openTrace()
{
    const QString file = dialogs_.openFile(tr("Open trace"), tr("Traces (*.strace *.json *.json.gz);;All files (*)"));
    return !file.isEmpty() && open(file, FileKind::Trace);
}

bool FileController::open(const QString& file, FileKind hint, TracePlan itsPlan)
{
    if (!QFileInfo::exists(file)) recent_.remove(file);
    return fileKind(file, hint) == FileKind::Plan ? openPlanFile(file) : readTrace(file, itsPlan);
}

bool FileController::openPlanFile(const QString& file)
{
    if (!mayDiscard()) return false;
    const Expected<void> opened = workbench_.document().open(file);
    if (opened.ok()) recent_.add(file);
    return report(opened, tr("Open plan"), tr("Opened %1.").arg(file));
}

bool FileController::begin(Work kind, const QString& file, JobLane::Work job)
{
    const QString title = kind == Work::Read ? tr("Open trace") : tr("Export");
    if (busy()) return report(Error{fromQt(tr("%1 is still at work; wait for it, or cancel it under Run").arg(doing_))}, title, {});
    kind_ = kind;
    doing_ = (kind == Work::Read ? tr("reading %1") : tr("writing %1")).arg(QFileInfo(file).fileName());
    progress_ = 0;
    lane_.start(std::move(job));
    return true;
}

bool FileController::readTrace(const QString& file, TracePlan itsPlan)
{
    if (workbench_.run().active()) return report(workbench_.whyNoOtherTrace(), tr("Open trace"), {});
    return begin(Work::Read, file, [this, file, itsPlan](JobControl& control) -> JobLane::Delivery {
        auto trace = std::make_shared<Expected<traces::Trace>>(traces::loadTrace(fromQt(file), [&control](double fraction) {
            control.report(fraction);
            return !control.cancelled();
        }));
        return [this, file, trace, itsPlan] { showTrace(file, std::move(*trace), itsPlan); };
    });
}

void FileController::showTrace(const QString& file, Expected<traces::Trace> trace, TracePlan itsPlan)
{
    const Expected<void> shown = trace.ok() ? workbench_.showTrace(std::move(trace).value(), file) : Expected<void>(trace.error());
    if (shown.ok()) recent_.add(file);
    if (!report(shown, tr("Open trace"), tr("Opened %1.").arg(file))) return;
    for (const QString& caveat : workbench_.openedCaveats()) emit warning(caveat);
    for (const QString& text : workbench_.openedInformation()) emit note(text);
    emit note(workbench_.meetTracePlan(itsPlan));
}

void FileController::cancel()
{
    if (!busy()) return;
    runFiles_.clear();
    lane_.cancel();
    emit note(tr("Cancelled: %1.").arg(doing_));
}

bool FileController::mayClose()
{
    if (busy() && kind_ == Work::Write && !dialogs_.giveUp(tr("Stop %1? The file will not be made.").arg(doing_))) return false;
    cancel();
    return true;
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

bool FileController::exportPicture(PictureExtent extent, const Theme& theme, const ShownTimeline& shown)
{
    const QString file = dialogs_.saveFile(extent == PictureExtent::Whole ? tr("Export the whole timeline") : tr("Export the timeline as shown"),
                                           tr("PNG picture (*.png);;SVG drawing (*.svg);;PDF document (*.pdf)"), suggestedName(".png"));
    if (file.isEmpty()) return false;
    return writePicture(file, extent, theme, shown);
}

QString FileController::askForTraceFile(const QString& title)
{
    return dialogs_.saveFile(title,
                             tr("Chrome trace, for Perfetto (*.json);;Chrome trace, compressed (*.json.gz);;Table of actions "
                                "(*.csv);;Stagecraft trace (*.strace)"),
                             suggestedName(".json"));
}

bool FileController::exportTrace()
{
    const QString file = askForTraceFile(tr("Export the trace"));
    return !file.isEmpty() && writeTrace(file);
}

bool FileController::write(const QString& file, std::function<Expected<void>(JobControl&)> writing, std::function<void()> written)
{
    return begin(Work::Write, file, [this, file, writing = std::move(writing), written = std::move(written)](JobControl& control) -> JobLane::Delivery {
        const Expected<void> done = writing(control);
        return [this, file, done, written] {
            report(done, tr("Export"), tr("Wrote %1.").arg(file));
            if (done.ok() && written) written();
            if (!done.ok()) runFiles_.clear();
        };
    });
}

// What a run still adds to is copied: another thread is going to read it.
std::shared_ptr<const traces::Trace> FileController::atRest(const std::shared_ptr<const traces::Trace>& trace) const
{
    const bool grows = workbench_.run().active() && trace == workbench_.run().trace();
    return grows ? std::make_shared<const traces::Trace>(*trace) : trace;
}

bool FileController::writePicture(const QString& file, PictureExtent extent, const Theme& theme, const ShownTimeline& shown)
{
    const TimelineScene& scene = workbench_.scene();
    if (scene.empty()) return report(Error{"there is no timeline to draw yet"}, tr("Export"), {});
    ExportOptions options;
    options.theme = theme;
    options.arrangement = scene.arrangement();
    options.folded = shown.folded;
    options.criticalPath = shown.criticalPath;
    if (extent == PictureExtent::AsShown) {
        const TimeRange& range = scene.axis().range();
        options.range = traces::Interval{range.first(), range.last()};
        options.selection = shown.selection;
        if (shown.width > 0) options.width = shown.width + 2 * kSheetMargin;
        if (shown.lanesHeight > 0) options.lanes = ShownLanes{shown.lanesHeight, shown.scroll};
    }
    std::vector<TraceSource> sources = scene.sources();
    for (TraceSource& source : sources) source.trace = atRest(source.trace);
    return begin(Work::Write, file, [this, sources, options, file](JobControl& control) -> JobLane::Delivery {
        auto drawn = std::make_shared<Expected<traces::OutputFile>>(
            drawTimeline(sources, options, file, [&control] { return control.cancelled(); }));
        // It takes its name in this thread: no cancelling can come between.
        return [this, drawn, file] {
            report(drawn->ok() ? drawn->value().commit() : Expected<void>(drawn->error()), tr("Export"), tr("Wrote %1.").arg(file));
        };
    });
}

bool FileController::writeTrace(const QString& file)
{
    // What a run or a file gave is worth more than what can be simulated again; unless only the simulation is shown.
    const bool other = workbench_.other() && workbench_.view() != ViewKind::SimulatedOnly;
    const std::shared_ptr<const traces::Trace>& chosen = other ? workbench_.other() : workbench_.simulation().simulation().trace;
    if (!chosen) return report(Error{"there is no trace to write yet"}, tr("Export"), {});
    return writeTraceTo(file, chosen);
}

bool FileController::writeTraceTo(const QString& file, const std::shared_ptr<const traces::Trace>& trace, std::function<void()> then)
{
    // What a run still adds is not in the file, and remains to be saved.
    const bool whole = !(workbench_.run().active() && trace == workbench_.run().trace());
    return write(
        file,
        [copy = atRest(trace), file](JobControl& control) {
            return traces::saveTrace(*copy, fromQt(file), [&control](double fraction) {
                control.report(fraction);
                return !control.cancelled();
            });
        },
        [this, trace, whole, then = std::move(then)] {
            if (whole) workbench_.markSaved(trace);
            if (then) then();
        });
}

} // namespace stagecraft::ui
