// SPDX-License-Identifier: GPL-3.0-or-later
//
// What every control of the lab has: a label with a mnemonic that is its buddy, an accessible name, a tooltip of one
// sentence; and the line under controls that says why a value cannot be taken.
#pragma once

#include <QLabel>
#include <QString>

class QFormLayout;
class QWidget;

namespace stagecraft::ui {

class ValueEditBase;

enum class LabelPlace { Beside, Above };

// `label` holds the mnemonic ("&Ranks"). The tooltip is remembered: see setCapability().
void addField(QFormLayout& form, const QString& label, QWidget& control, const QString& tip, LabelPlace place = LabelPlace::Beside);
// A field that may complain: its reason stands right below it.
void addEdit(QFormLayout& form, const QString& label, ValueEditBase& edit, const QString& tip, LabelPlace place = LabelPlace::Beside);
// The label alone, for a control that stands in the form with others.
QLabel* newLabel(const QString& label, QWidget& control, const QString& tip);
void describe(QWidget& control, const QString& name, const QString& tip);

// Enables a control, or disables it with the reason added to its tooltip.
void setCapability(QWidget& control, bool available, const QString& reasonIfNot);

// A text that can be reached by Tab, read and copied.
void makeSelectable(QLabel& label);

// The wheel scrolls the panel instead of changing a control that was not asked for.
void ignoreWheelUnlessFocused(QWidget& control);

// Text under controls, hidden while there is nothing to say.
class InlineNote : public QLabel {
    Q_OBJECT
public:
    enum class Tone { Hint, Problem };
    explicit InlineNote(Tone tone, QWidget* parent = nullptr);
    void say(const QString& text);
};

} // namespace stagecraft::ui
