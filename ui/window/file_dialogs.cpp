// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/file_dialogs.h"

#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QRegularExpression>

namespace stagecraft::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("FileDialogs", text); }

// "plan.json" of "Plan (*.plan.json)".
QString suffixOf(const QString& filter)
{
    static const QRegularExpression firstPattern(R"(\*\.([\w.]+))");
    return firstPattern.match(filter).captured(1);
}

// The name with the ending of the chosen form in place of another form's.
QString withSuffix(QString name, const QString& suffix, const QStringList& filters)
{
    for (const QString& filter : filters) {
        const QString other = '.' + suffixOf(filter);
        if (!name.endsWith(other, Qt::CaseInsensitive)) continue;
        name.chop(other.size());
        break;
    }
    return name + '.' + suffix;
}

// The dialog itself adds the ending where none is typed: its question about a file that is there already is about the name
// that will be written.
QString askWhereToSave(QWidget* window, const QString& title, const QString& filter, const QString& suggestion)
{
    QFileDialog dialog(window, title);
    const QStringList filters = filter.split(QStringLiteral(";;"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setFileMode(QFileDialog::AnyFile);
    dialog.setNameFilters(filters);
    dialog.setDefaultSuffix(suffixOf(filters.front()));
    dialog.selectFile(suggestion);
    QObject::connect(&dialog, &QFileDialog::filterSelected, &dialog, [&](const QString& chosen) {
        const QString suffix = suffixOf(chosen);
        const QStringList files = dialog.selectedFiles();
        dialog.setDefaultSuffix(suffix);
        if (!files.isEmpty()) dialog.selectFile(withSuffix(QFileInfo(files.front()).fileName(), suffix, filters));
    });
    if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return {};
    return dialog.selectedFiles().front();
}

} // namespace

FileDialogs FileDialogs::ofWindow(QWidget* window)
{
    FileDialogs dialogs;
    dialogs.openFile = [window](const QString& title, const QString& filter) {
        return QFileDialog::getOpenFileName(window, title, {}, filter);
    };
    dialogs.saveFile = [window](const QString& title, const QString& filter, const QString& suggestion) {
        return askWhereToSave(window, title, filter, suggestion);
    };
    dialogs.unsaved = [window](const QString& question) {
        QMessageBox box(QMessageBox::Question, tr("Not saved yet"), question,
                        QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, window);
        box.setTextFormat(Qt::PlainText); // of what a plan is called
        box.setInformativeText(tr("Without saving they are lost."));
        box.setDefaultButton(QMessageBox::Save);
        const int answer = box.exec();
        return answer == QMessageBox::Save ? UnsavedAnswer::Save
               : answer == QMessageBox::Discard ? UnsavedAnswer::Discard
                                                : UnsavedAnswer::Cancel;
    };
    dialogs.tellProblem = [window](const QString& title, const QString& text) {
        QMessageBox box(QMessageBox::Warning, title, text, QMessageBox::Ok, window);
        box.setTextFormat(Qt::PlainText);
        box.exec();
    };
    dialogs.giveUp = [window](const QString& question) {
        QMessageBox box(QMessageBox::Question, tr("Still at work"), question, QMessageBox::Discard | QMessageBox::Cancel, window);
        box.setTextFormat(Qt::PlainText);
        box.setDefaultButton(QMessageBox::Cancel);
        return box.exec() == QMessageBox::Discard;
    };
    return dialogs;
}

} // namespace stagecraft::ui
