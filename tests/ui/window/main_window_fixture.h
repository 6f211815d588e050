// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole window, pressed as a user presses it. Runs go to the fake worker (tests/ui/bridge/fake_worker.cpp): a plan's
// name says what it does.
#pragma once

#include "engine/plan/plan_json.h"
#include "ui/window/main_window.h"
#include "ui/window/window_actions.h"

#include <QLabel>
#include <QLineEdit>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {

class MainWindowTest : public testing::Test {
protected:
    MainWindowTest() { openWindow(); }

    void openWindow(std::optional<ThemeKind> theme = {})
    {
        FileDialogs dialogs{.openFile = [this](const QString&, const QString&) { return chosen; },
                            .saveFile = [this](const QString& title, const QString&, const QString&) {
                                if (chosen.isEmpty()) return chosen;
                                // each its own file, where several are asked for
                                saveTitles << title;
                                saved << (saved.contains(chosen) ? QStringLiteral("%1.%2.strace").arg(chosen).arg(saved.size()) : chosen);
                                return saved.last();
                            },
                            .unsaved = [this](const QString& text) {
                                question = text;
                                ++asked;
                                return answer;
                            },
                            .tellProblem = [this](const QString&, const QString& text) { told << text; },
                            .giveUp = [this](const QString& text) {
                                question = text;
                                return givesUp;
                            }};
        window = std::make_unique<MainWindow>(settings, WindowOptions{.programFolder = "/nowhere", .theme = theme, .dialogs = dialogs});
        window->show();
        the<QLineEdit>("engineCommand").setText(STAGECRAFT_FAKE_WORKER);
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = window->findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    void openPlan(const char* preset, const char* name)
    {
        engine::Plan plan = engine::presetPlan(preset).value();
        plan.name = name;
        plan.run.steps = 2;
        window->workbench().document().startFrom(plan);
    }
    bool waitFor(engine::SessionState state)
    {
        return QTest::qWaitFor([&] { return window->workbench().run().state() == state; });
    }
    void press(QAction* action)
    {
        ASSERT_TRUE(action->isEnabled()) << action->text().toStdString() << ": " << action->statusTip().toStdString();
        action->trigger();
    }
    void runUntil(const char* name, engine::SessionState state)
    {
        openPlan("hello", name);
        press(window->actions().run);
        ASSERT_TRUE(waitFor(state));
    }
    QString statusText() { return the<QLabel>("runStatus").text(); }

    QTemporaryDir folder;
    QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
    QString chosen;
    UnsavedAnswer answer = UnsavedAnswer::Cancel;
    int asked = 0;
    QString question;
    bool givesUp = true;
    QStringList saveTitles;
    QStringList saved;
    QStringList told;
    std::unique_ptr<MainWindow> window;
};

} // namespace stagecraft::ui
