// SPDX-License-Identifier: GPL-3.0-or-later
//
// A part of the lab: shows one side of a plan and emits the whole changed plan when a control is used. It never changes
// what the user did not touch; what a plan cannot be is said beside the control.
//
//   bind(*steps_, "steps", tr("steps"), [](engine::Plan& plan) -> auto& { return plan.run.steps; });
#pragma once

#include "engine/plan/plan.h"
#include "ui/lab/value_edit.h"

#include <QCheckBox>
#include <QComboBox>
#include <QSpinBox>
#include <QWidget>

#include <initializer_list>
#include <type_traits>
#include <utility>

class QFormLayout;

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

    // The control gets a name, and an edit of it changes place(plan), a member of the plan, under the name `what`.
    template <class T, class Place>
    void bind(ValueEdit<T>& edit, const char* name, const QString& what, Place place)
    {
        edit.setObjectName(name);
        edit.edited = [this, what, control = QString(name), place](const T& value) {
            change(what, control, [&](engine::Plan& plan) { place(plan) = value; });
        };
    }
    template <class Place>
    void bind(QSpinBox& spin, const char* name, const QString& what, Place place)
    {
        spin.setObjectName(name);
        connect(&spin, &QSpinBox::valueChanged, this, [this, what, control = QString(name), place](int value) {
            change(what, control, [&](engine::Plan& plan) { place(plan) = value; });
        });
    }
    template <class Place>
    void bind(QComboBox& combo, const char* name, const QString& what, Place place)
    {
        combo.setObjectName(name);
        connect(&combo, &QComboBox::currentIndexChanged, this, [this, what, place, &combo] {
            choose(what, [&](engine::Plan& plan) {
                using Choice = std::remove_reference_t<decltype(place(plan))>;
                place(plan) = static_cast<Choice>(combo.currentData().toInt());
            });
        });
    }
    template <class Place>
    void bind(QCheckBox& box, const char* name, const QString& what, Place place)
    {
        box.setObjectName(name);
        connect(&box, &QCheckBox::toggled, this,
                [this, what, place](bool on) { choose(what, [&](engine::Plan& plan) { place(plan) = on; }); });
    }

    template <class Enum>
    struct Choice {
        QString text;
        Enum value;
        QString tip = {}; // where the text does not say it all
    };
    template <class Enum>
    static void offer(QComboBox& combo, std::initializer_list<Choice<Enum>> choices)
    {
        for (const Choice<Enum>& choice : choices) {
            combo.addItem(choice.text, static_cast<int>(choice.value));
            if (!choice.tip.isEmpty()) combo.setItemData(combo.count() - 1, choice.tip, Qt::ToolTipRole);
        }
    }

    QFormLayout* newForm();
    QSpinBox* newSpin(int least, int most);
    QComboBox* newCombo();
    static void select(QComboBox& combo, const QVariant& data); // adds nothing; -1 where there is none
    template <class Enum>
        requires std::is_enum_v<Enum>
    static void select(QComboBox& combo, Enum value)
    {
        select(combo, QVariant(static_cast<int>(value)));
    }
    // A choice that cannot be made now stays in the list, with the reason as its tooltip.
    static void setItemEnabled(QComboBox& combo, const QVariant& data, bool enabled, const QString& reasonIfNot);

private:
    engine::Plan plan_;
    bool showing_ = false;
};

} // namespace stagecraft::ui
