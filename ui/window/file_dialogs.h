// SPDX-License-Identifier: GPL-3.0-or-later
//
// The questions that the program asks about files, as a value: the window asks with dialogs, tests answer by themselves.
#pragma once

#include <QString>

#include <functional>

class QWidget;

namespace stagecraft::ui {

enum class UnsavedAnswer { Save, Discard, Cancel };

struct FileDialogs {
    // An empty answer means that the user changed their mind. `filter` as QFileDialog takes it; the suffix is added where
    // none is typed, and a file that has the name already is asked about.
    std::function<QString(const QString& title, const QString& filter)> openFile;
    std::function<QString(const QString& title, const QString& filter, const QString& suggestion)> saveFile;
    std::function<UnsavedAnswer(const QString& question)> unsaved;
    std::function<void(const QString& title, const QString& text)> tellProblem;
    std::function<bool(const QString& question)> giveUp; // what is at work when the window closes

    static FileDialogs ofWindow(QWidget* window);
};

} // namespace stagecraft::ui
