// SPDX-License-Identifier: GPL-3.0-or-later
//
// Everything of the File menu: plans, traces, exports. Asks through FileDialogs, tells what it did through note(), and keeps
// long reading and writing off the GUI thread.
#pragma once

#include "ui/bridge/background_job.h"
#include "ui/theme/theme.h"
#include "ui/timeline/shown_timeline.h"
#include "ui/window/file_dialogs.h"
#include "ui/window/file_kind.h"
#include "ui/window/recent_files.h"
#include "ui/window/workbench.h"

#include "traces/base/expected.h"
#include "traces/store/trace.h"

#include <QObject>
#include <QString>

#include <functional>
#include <memory>
#include <vector>

class QSettings;

namespace stagecraft::ui {

enum class PictureExtent { AsShown, Whole };

class FileController : public QObject {
    Q_OBJECT
public:
    // Workbench and settings must outlive it.
    FileController(Workbench& workbench, QSettings& settings, FileDialogs dialogs, QObject* parent = nullptr);

    [[nodiscard]] RecentFiles& recent() { return recent_; }

    // False where the user wants to keep unsaved changes.
    bool mayDiscard();
    // The window may close: asks once about all that would be lost, a plan's changes and runs, also one that still goes on.
    enum class Quit { No, Yes, WhenWritten }; // WhenWritten: runs are being written; ask again when that has ended
    Quit mayQuit();

    bool openSchedule(); // a schedule that is written out, into the plan
    bool saveSchedule(); // the simulated order, in its text form
    bool startFromPreset(const QString& name);
    bool openPlan();
    bool save();
    bool saveAs();

    // Traces are read, and everything is exported, beside the window, one at a time: these tell whether the work has begun;
    // note() or problem() tells how it ended.
    bool openTrace();
    // A plan or a trace, by its content; a plan at once.
    bool open(const QString& file, FileKind hint = FileKind::Trace, TracePlan itsPlan = TracePlan::Take);
    bool exportPicture(PictureExtent extent, const Theme& theme, const ShownTimeline& shown);
    bool exportTrace(); // Chrome JSON, CSV, own journal
    // The same without asking for the file.
    bool writePicture(const QString& file, PictureExtent extent, const Theme& theme, const ShownTimeline& shown);
    bool writeTrace(const QString& file);

    [[nodiscard]] bool busy() const { return lane_.busy(); }
    [[nodiscard]] const QString& doing() const { return doing_; } // "reading big.strace"
    [[nodiscard]] double progress() const { return progress_; }   // 0..1
    void cancel(); // nothing is shown, and no file made
    // False where the user wants to wait for a file that is being written.
    bool mayClose();

signals:
    void note(const QString& text);
    void warning(const QString& text);
    void problem(const QString& text);
    void workChanged(); // busy(), doing() or progress()

private:
    enum class Work { Read, Write };

    bool report(const traces::Expected<void>& done, const QString& title, const QString& noteIfDone);
    bool openPlanFile(const QString& file);
    bool readTrace(const QString& file, TracePlan itsPlan);
    void showTrace(const QString& file, traces::Expected<traces::Trace> trace, TracePlan itsPlan);
    bool writeTraceTo(const QString& file, const std::shared_ptr<const traces::Trace>& trace, std::function<void()> then = {});
    QString askForTraceFile(const QString& title);
    struct RunFile {
        QString file;
        std::shared_ptr<const traces::Trace> trace;
    };
    // One after another, a run that goes on when it has come to its end.
    void writeRuns();
    [[nodiscard]] QString lossText(bool plan, const std::vector<KeptRun>& runs) const;
    [[nodiscard]] bool asksForRunFiles(const std::vector<KeptRun>& runs);
    // `job` runs in another thread.
    bool begin(Work kind, const QString& file, JobLane::Work job);
    // `written` is called in this thread when the file is there.
    bool write(const QString& file, std::function<traces::Expected<void>(JobControl&)> writing, std::function<void()> written = {});
    [[nodiscard]] std::shared_ptr<const traces::Trace> atRest(const std::shared_ptr<const traces::Trace>& trace) const;
    [[nodiscard]] QString suggestedName(const QString& ending) const;

    Workbench& workbench_;
    FileDialogs dialogs_;
    RecentFiles recent_;
    QString doing_;
    double progress_ = 0;
    std::vector<RunFile> runFiles_; // still to be written before the window closes
    Work kind_ = Work::Read;
    JobLane lane_; // last: its thread ends before what its jobs use
};

} // namespace stagecraft::ui
