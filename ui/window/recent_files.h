// SPDX-License-Identifier: GPL-3.0-or-later
//
// The files opened or saved last, newest first, kept in the settings.
#pragma once

#include <QObject>
#include <QStringList>

class QSettings;

namespace stagecraft::ui {

class RecentFiles : public QObject {
    Q_OBJECT
public:
    static constexpr int kMost = 10;

    // The settings must outlive it.
    explicit RecentFiles(QSettings& settings, QObject* parent = nullptr);

    [[nodiscard]] QStringList files() const;
    void add(const QString& file);
    void remove(const QString& file); // one that is gone
    void clear();

signals:
    void changed();

private:
    void keep(const QStringList& files);
    QSettings& settings_;
};

} // namespace stagecraft::ui
