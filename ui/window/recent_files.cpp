// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/recent_files.h"

#include <QFileInfo>
#include <QSettings>

namespace stagecraft::ui {
namespace {
constexpr const char* kKey = "recentFiles";
}

RecentFiles::RecentFiles(QSettings& settings, QObject* parent) : QObject(parent), settings_(settings) {}

QStringList RecentFiles::files() const { return settings_.value(kKey).toStringList(); }

void RecentFiles::keep(const QStringList& files)
{
    settings_.setValue(kKey, files);
    emit changed();
}

void RecentFiles::add(const QString& file)
{
    const QString absolute = QFileInfo(file).absoluteFilePath();
    QStringList files = this->files();
    files.removeAll(absolute);
    files.prepend(absolute);
    keep(files.mid(0, kMost));
}

void RecentFiles::remove(const QString& file)
{
    QStringList files = this->files();
    if (files.removeAll(QFileInfo(file).absoluteFilePath()) > 0) keep(files);
}

void RecentFiles::clear() { keep({}); }

} // namespace stagecraft::ui
