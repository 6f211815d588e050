// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/log_panel.h"

#include <QScrollBar>
#include <QTime>

namespace stagecraft::ui {

LogPanel::LogPanel(QWidget* parent) : QPlainTextEdit(parent), theme_(Theme::of(ThemeKind::Light))
{
    setReadOnly(true);
    setMaximumBlockCount(kMostLines);
    setTabChangesFocus(true);
    setFrameShape(QFrame::NoFrame);
    setObjectName("log");
    setAccessibleName(tr("Problems and log"));
    setToolTip(tr("What went wrong and what was done, newest last; lines can be selected and copied."));
}

QSize LogPanel::sizeHint() const { return {600, 96}; }

void LogPanel::setTheme(const Theme& theme)
{
    theme_ = theme;
    const int at = verticalScrollBar()->value();
    writeAnew();
    verticalScrollBar()->setValue(at);
}

void LogPanel::setProblemsOnly(bool only)
{
    problemsOnly_ = only;
    writeAnew();
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

void LogPanel::writeAnew()
{
    clear();
    for (const Entry& entry : entries_) append(entry);
}

void LogPanel::append(const Entry& entry)
{
    if (problemsOnly_ && entry.level == Level::Note) return;
    const QColor colour = entry.level == Level::Problem   ? theme_.error
                          : entry.level == Level::Warning ? theme_.warning
                                                          : theme_.mutedText;
    const QString word = entry.level == Level::Problem ? tr("problem") : entry.level == Level::Warning ? tr("warning") : tr("note");
    QString body = entry.text.toHtmlEscaped();
    body.replace('\n', "<br/>");
    appendHtml(QStringLiteral("<span style='color:%1'>%2&nbsp; %3</span>&nbsp; %4")
                   .arg(theme_.mutedText.name(), entry.time, QStringLiteral("<span style='color:%1'>%2</span>").arg(colour.name(), word), body));
}

void LogPanel::say(Level level, const QString& text)
{
    entries_.push_back({level, QTime::currentTime().toString("HH:mm:ss"), text});
    if (entries_.size() > static_cast<std::size_t>(kMostLines)) entries_.pop_front();
    append(entries_.back());
    if (level != Level::Problem) return;
    ++problems_;
    emit problemsChanged(problems_);
}

} // namespace stagecraft::ui
