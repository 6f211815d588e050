// SPDX-License-Identifier: GPL-3.0-or-later
//
// Everything of the File menu: plans, traces, exports. Asks through FileDialogs, tells what it did through note().
#pragma once

#include "ui/theme/theme.h"
#include "ui/timeline/lane_layout.h"
#include "ui/window/file_dialogs.h"
#include "ui/window/recent_files.h"

#include "traces/base/expected.h"

#include <QObject>
#include <QString>

class QSettings;

namespace stagecraft::ui {

class Workbench;

enum class PictureExtent { AsShown, Whole };

class FileController : public QObject {
    Q_OBJECT
public:
    // Workbench and settings must outlive it.
    FileController(Workbench& workbench, QSettings& settings, FileDialogs dialogs, QObject* parent = nullptr);

    [[nodiscard]] RecentFiles& recent() { return recent_; }

    // False where the user wants to keep unsaved changes.
    bool mayDiscard();

    bool startFromPreset(const QString& name);
    bool openPlan();
    bool open(const QString& file); // a plan or a trace, by its name's ending
    bool save();
    bool saveAs();
    bool openTrace();

    bool exportPicture(PictureExtent extent, const Theme& theme, const FoldedRanks& folded);
    bool exportTrace(); // Chrome JSON, CSV, own journal
    // The same without asking; an error names the file.
    traces::Expected<void> writePicture(const QString& file, PictureExtent extent, const Theme& theme, const FoldedRanks& folded) const;
    traces::Expected<void> writeTrace(const QString& file) const;

signals:
    void note(const QString& text);
    void problem(const QString& text);

private:
    bool report(const traces::Expected<void>& done, const QString& title, const QString& noteIfDone);
    [[nodiscard]] QString suggestedName(const QString& ending) const;

    Workbench& workbench_;
    FileDialogs dialogs_;
    RecentFiles recent_;
};

} // namespace stagecraft::ui
