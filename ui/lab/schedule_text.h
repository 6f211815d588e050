// SPDX-License-Identifier: GPL-3.0-or-later
//
// A schedule's text form, to be read and written: a line per rank. It tells of every text that is typed; whoever takes it
// says what is wrong with it.
#pragma once

#include <QPlainTextEdit>

namespace stagecraft::ui {

class ScheduleText : public QPlainTextEdit {
    Q_OBJECT
public:
    static constexpr qsizetype kMostShown = 200'000; // characters; a longer text is not laid out here

    explicit ScheduleText(QWidget* parent = nullptr);

    // Leaves what is being typed alone where it says the same.
    void setText(const QString& text);
    QSize sizeHint() const override;

signals:
    void edited(const QString& text);

private:
    bool showing_ = false;
};

} // namespace stagecraft::ui
