// SPDX-License-Identifier: GPL-3.0-or-later
//
// The windows beside the main one: gallery, curves, comparison, what if. Each is made when it is first asked for and keeps what it shows until
// the program ends. They are plain windows of their own and do not keep the main one from being used.
//
//   ExploreWindows explore(workbench, dialogs, this);
//   explore.showGallery();
#pragma once

#include "ui/theme/theme.h"
#include "ui/window/file_dialogs.h"

#include <QObject>

#include <cstdint>

class QWidget;

namespace stagecraft::ui {

class ComparisonWindow;
class GalleryDialog;
class SweepWindow;
class WhatIfWindow;
class Workbench;

enum class ExploreWindow : std::uint8_t { Gallery, Curves, Comparison, WhatIf };

class ExploreWindows : public QObject {
    Q_OBJECT
public:
    // The workbench must outlive it; the windows belong to `parent`.
    ExploreWindows(Workbench& workbench, FileDialogs dialogs, QWidget& parent);

    void setTheme(const Theme& theme);
    GalleryDialog& gallery();
    SweepWindow& curves();
    ComparisonWindow& comparison();
    WhatIfWindow& whatIf();

    void showGallery();
    void showCurves();
    void showComparison();
    void showWhatIf();
    // Shows one and has it do what its controls say at first; settled() follows. How pictures of it are made.
    QWidget& present(ExploreWindow which);

signals:
    void settled(); // one of the windows shows all of what it was asked for

private:
    void show(QWidget& window);

    Workbench& workbench_;
    FileDialogs dialogs_;
    QWidget& parent_;
    Theme theme_;
    GalleryDialog* gallery_ = nullptr;
    SweepWindow* curves_ = nullptr;
    ComparisonWindow* comparison_ = nullptr;
    WhatIfWindow* whatIf_ = nullptr;
};

} // namespace stagecraft::ui
