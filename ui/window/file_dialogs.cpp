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

} // namespace

FileDialogs FileDialogs::ofWindow(QWidget* window)
{
    FileDialogs dialogs;
    dialogs.openFile = [window](const QString& title, const QString& filter) {
        return QFileDialog::getOpenFileName(window, title, {}, filter);
    };
    dialogs.saveFile = [window](const QString& title, const QString& filter, const QString& suggestion) {
        QString chosenFilter;
        QString file = QFileDialog::getSaveFileName(window, title, suggestion, filter, &chosenFilter);
        if (!file.isEmpty() && QFileInfo(file).suffix().isEmpty()) file += '.' + suffixOf(chosenFilter.isEmpty() ? filter : chosenFilter);
        return file;
    };
    dialogs.unsaved = [window](const QString& title) {
        QMessageBox box(QMessageBox::Question, tr("Unsaved changes"), tr("Save the changes of \"%1\"?").arg(title),
                        QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, window);
        box.setInformativeText(tr("Without saving they are lost."));
        box.setDefaultButton(QMessageBox::Save);
        const int answer = box.exec();
        return answer == QMessageBox::Save ? UnsavedAnswer::Save
               : answer == QMessageBox::Discard ? UnsavedAnswer::Discard
                                                : UnsavedAnswer::Cancel;
    };
    dialogs.tellProblem = [window](const QString& title, const QString& text) { QMessageBox::warning(window, title, text); };
    return dialogs;
}

} // namespace stagecraft::ui
