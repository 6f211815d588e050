// SPDX-License-Identifier: GPL-3.0-or-later
//
// The plan that the window edits: a value with an undo stack of values, the file that it came from, and whether it was
// saved. What is typed into one control without a pause is one step of undo; every other choice is a step of its own.
//
//   document.edit(changed, tr("ranks"), "ranks");
//   document.edit(changed, tr("schedule"));
//   document.undoStack().undo();
#pragma once

#include "engine/plan/plan.h"
#include "traces/base/expected.h"

#include <QObject>
#include <QString>
#include <QUndoStack>

#include <chrono>
#include <functional>
#include <utility>

namespace stagecraft::ui {

class PlanDocument : public QObject {
    Q_OBJECT
public:
    using Clock = std::function<std::chrono::milliseconds()>; // never goes back

    static constexpr std::chrono::milliseconds kTypingPause{1000}; // after it the next key begins another step of undo

    explicit PlanDocument(QObject* parent = nullptr);

    void setClock(Clock clock) { clock_ = std::move(clock); }

    [[nodiscard]] const engine::Plan& plan() const { return plan_; }
    [[nodiscard]] QUndoStack& undoStack() { return undo_; }

    // `what` names the change in the Edit menu ("ranks"). Edits with the same `typedInto` that follow each other within
    // kTypingPause merge: a number goes through many values while it is typed. Without one an edit stays a step of its own.
    void edit(engine::Plan plan, const QString& what, const QString& typedInto = {});

    // A fresh document, unsaved, without a file and without a past.
    void startFrom(engine::Plan plan);

    traces::Expected<void> open(const QString& file);
    traces::Expected<void> save(); // precondition: has a file
    traces::Expected<void> saveAs(const QString& file);

    [[nodiscard]] const QString& file() const { return file_; } // empty: never saved
    [[nodiscard]] QString title() const;                        // file name, or the plan's name
    [[nodiscard]] bool modified() const { return !undo_.isClean(); }

signals:
    void changed(); // another plan, by an edit, undo, redo or another document
    void titleChanged();

private:
    class EditCommand;
    void show(const engine::Plan& plan);
    void adopt(engine::Plan plan, const QString& file);

    engine::Plan plan_;
    QUndoStack undo_;
    QString file_;
    Clock clock_;
};

} // namespace stagecraft::ui
