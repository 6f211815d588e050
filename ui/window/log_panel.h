// SPDX-License-Identifier: GPL-3.0-or-later
//
// Problems and notes, newest last; each line can be selected and copied.
#pragma once

#include "ui/theme/theme.h"

#include <QPlainTextEdit>

#include <deque>

namespace stagecraft::ui {

class LogPanel : public QPlainTextEdit {
    Q_OBJECT
public:
    enum class Level { Note, Warning, Problem };
    static constexpr int kMostLines = 2000; // older ones are dropped

    explicit LogPanel(QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    void say(Level level, const QString& text);
    void note(const QString& text) { say(Level::Note, text); }
    void warn(const QString& text) { say(Level::Warning, text); }
    void problem(const QString& text) { say(Level::Problem, text); }
    void setProblemsOnly(bool only); // warnings count as problems here
    [[nodiscard]] int problemCount() const { return problems_; }
    QSize sizeHint() const override;

signals:
    void problemsChanged(int count);

private:
    struct Entry {
        Level level;
        QString time;
        QString text;
    };
    void append(const Entry& entry);
    void writeAnew();

    Theme theme_;
    std::deque<Entry> entries_; // to write them again in another theme's colours
    int problems_ = 0;
    bool problemsOnly_ = false;
};

} // namespace stagecraft::ui
