// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/about_dialog.h"

#include <QCoreApplication>
#include <QMessageBox>

namespace stagecraft::ui {

void showAbout(QWidget* parent)
{
    const QString text = QCoreApplication::translate(
        "AboutDialog",
        "<h3>Stagecraft %1</h3>"
        "<p>A desktop lab for pipeline parallelism: plan it, simulate it, run it, watch it.</p>"
        "<p>The window is free software under the GNU General Public License, version 3 or later; the engine, the "
        "traces and the command line are under the Apache License 2.0. There is no warranty.</p>"
        "<p>Made with Qt (LGPL-3.0), QCustomPlot (GPL-3.0), LibTorch (BSD-3-Clause, in the engine's own process), {fmt} (MIT), "
        "nlohmann/json (MIT), simdjson (Apache-2.0), zlib and CLI11 (BSD-3-Clause).</p>");
    QMessageBox box(QMessageBox::NoIcon, QCoreApplication::translate("AboutDialog", "About Stagecraft"),
                    text.arg(QCoreApplication::applicationVersion()), QMessageBox::Close, parent);
    box.setTextFormat(Qt::RichText);
    if (parent) box.setIconPixmap(parent->windowIcon().pixmap(64, 64));
    box.exec();
}

} // namespace stagecraft::ui
