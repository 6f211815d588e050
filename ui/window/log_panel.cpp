// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/log_panel.h"

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
}

QSize LogPanel::sizeHint() const { return {600, 96}; }

void LogPanel::setTheme(const Theme& theme) { theme_ = theme; }

void LogPanel::say(Level level, const QString& text)
{
    const QColor colour = level == Level::Problem   ? theme_.error
                          : level == Level::Warning ? theme_.warning
                                                    : theme_.mutedText;
    const QString word = level == Level::Problem ? tr("problem") : level == Level::Warning ? tr("warning") : tr("note");
    QString body = text.toHtmlEscaped();
    body.replace('\n', "<br/>");
    appendHtml(QStringLiteral("<span style='color:%1'>%2&nbsp; %3</span>&nbsp; %4")
                   .arg(theme_.mutedText.name(), QTime::currentTime().toString("HH:mm:ss"),
                        QStringLiteral("<span style='color:%1'>%2</span>").arg(colour.name(), word), body));
    if (level != Level::Problem) return;
    ++problems_;
    emit problemsChanged(problems_);
}

} // namespace stagecraft::ui
