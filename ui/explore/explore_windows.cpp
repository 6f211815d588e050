// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/explore_windows.h"

#include "ui/explore/comparison_window.h"
#include "ui/explore/gallery_dialog.h"
#include "ui/explore/sweep_window.h"
#include "ui/explore/what_if_window.h"
#include "ui/window/workbench.h"

namespace stagecraft::ui {

ExploreWindows::ExploreWindows(Workbench& workbench, FileDialogs dialogs, QWidget& parent)
    : QObject(&parent), workbench_(workbench), dialogs_(std::move(dialogs)), parent_(parent), theme_(Theme::of(ThemeKind::Light))
{
}

void ExploreWindows::setTheme(const Theme& theme)
{
    theme_ = theme;
    if (gallery_) gallery_->setTheme(theme);
    if (curves_) curves_->setTheme(theme);
    if (comparison_) comparison_->setTheme(theme);
    if (whatIf_) whatIf_->setTheme(theme);
}

GalleryDialog& ExploreWindows::gallery()
{
    if (!gallery_) {
        gallery_ = new GalleryDialog(workbench_.document(), &parent_);
        gallery_->setTheme(theme_);
        connect(&gallery_->model(), &GalleryModel::finished, this, &ExploreWindows::settled);
        connect(gallery_, &GalleryDialog::compareWanted, this, [this](const std::vector<engine::Plan>& plans) {
            showComparison();
            comparison().compare(plans);
        });
    }
    return *gallery_;
}

SweepWindow& ExploreWindows::curves()
{
    if (!curves_) {
        curves_ = new SweepWindow(workbench_.document(), dialogs_, &parent_);
        curves_->setTheme(theme_);
        connect(curves_, &SweepWindow::swept, this, &ExploreWindows::settled);
    }
    return *curves_;
}

ComparisonWindow& ExploreWindows::comparison()
{
    if (!comparison_) {
        comparison_ = new ComparisonWindow(workbench_, dialogs_, &parent_);
        comparison_->setTheme(theme_);
        connect(comparison_, &ComparisonWindow::compared, this, &ExploreWindows::settled);
    }
    return *comparison_;
}

WhatIfWindow& ExploreWindows::whatIf()
{
    if (!whatIf_) {
        whatIf_ = new WhatIfWindow(workbench_, &parent_);
        whatIf_->setTheme(theme_);
        connect(whatIf_, &WhatIfWindow::predicted, this, &ExploreWindows::settled);
    }
    return *whatIf_;
}

void ExploreWindows::show(QWidget& window)
{
    if (window.isVisible()) { // behind another one, perhaps
        window.raise();
        window.activateWindow();
    }
    window.show();
}

QWidget& ExploreWindows::present(ExploreWindow which)
{
    switch (which) {
    case ExploreWindow::Gallery: showGallery(); return gallery();
    case ExploreWindow::Curves: showCurves(); curves().sweep(); return curves();
    case ExploreWindow::Comparison: showComparison(); comparison().compareChecked(); return comparison();
    case ExploreWindow::WhatIf: showWhatIf(); whatIf().predict(); return whatIf();
    }
    return parent_;
}

void ExploreWindows::showGallery() { show(gallery()); }
void ExploreWindows::showCurves() { show(curves()); }
void ExploreWindows::showComparison() { show(comparison()); }
void ExploreWindows::showWhatIf() { show(whatIf()); }

} // namespace stagecraft::ui
