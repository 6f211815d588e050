// SPDX-License-Identifier: GPL-3.0-or-later
//
// A part of the lab: shows one side of a plan and emits the whole changed plan when a control is used. It never changes
// what the user did not touch; what a plan cannot be is said beside the control.
#pragma once

#include "engine/plan/plan.h"

#include <QWidget>

#include <utility>

class QComboBox;
class QFormLayout;
class QSpinBox;

namespace stagecraft::ui {

class LabSection : public QWidget {
    Q_OBJECT
public:
    explicit LabSection(QWidget* parent = nullptr);

    void setPlan(const engine::Plan& plan);
    [[nodiscard]] const engine::Plan& plan() const { return plan_; }

signals:
    void edited(const stagecraft::engine::Plan& plan, const QString& what, const QString& typedInto); // see PlanDocument::edit

protected:
    virtual void showPlan() = 0; // plan() into the controls; signals of controls are ignored meanwhile

    template <class Change>
    void change(const QString& what, const QString& typedInto, Change&& apply)
    {
        if (showing_) return;
        engine::Plan next = plan_;
        apply(next);
        if (next != plan_) emit edited(next, what, typedInto);
    }

    // A choice in a box, a button, a cell of a table: a step of undo each.
    template <class Change>
    void choose(const QString& what, Change&& apply)
    {
        change(what, {}, std::forward<Change>(apply));
    }

    QFormLayout* newForm();
    QSpinBox* newSpin(int least, int most);
    QComboBox* newCombo();
    static void select(QComboBox& combo, const QVariant& data); // adds nothing; -1 where there is none
    // A choice that cannot be made now stays in the list, with the reason as its tooltip.
    static void setItemEnabled(QComboBox& combo, const QVariant& data, bool enabled, const QString& reasonIfNot);

private:
    engine::Plan plan_;
    bool showing_ = false;
};

} // namespace stagecraft::ui
