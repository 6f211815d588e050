// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/form.h"

#include "ui/bridge/plain_tip.h"
#include "ui/lab/value_edit.h"

#include <QEvent>
#include <QFormLayout>
#include <QVariant>
#include <QWidget>

namespace stagecraft::ui {
namespace {

constexpr const char* kTipProperty = "stagecraftTip";

class WheelGuard : public QObject {
public:
    using QObject::QObject;
    bool eventFilter(QObject* watched, QEvent* event) override
    {
        if (event->type() != QEvent::Wheel || static_cast<QWidget*>(watched)->hasFocus()) return false;
        event->ignore();
        return true;
    }
};

} // namespace

void describe(QWidget& control, const QString& name, const QString& tip)
{
    control.setAccessibleName(name);
    control.setAccessibleDescription(tip);
    control.setToolTip(tip);
    control.setProperty(kTipProperty, tip);
}

QLabel* newLabel(const QString& label, QWidget& control, const QString& tip)
{
    auto* text = new QLabel(label);
    text->setBuddy(&control);
    text->setToolTip(tip);
    QString name = label;
    name.remove('&');
    describe(control, name, tip);
    return text;
}

void addField(QFormLayout& form, const QString& label, QWidget& control, const QString& tip, LabelPlace place)
{
    QLabel* text = newLabel(label, control, tip);
    if (place == LabelPlace::Beside) {
        form.addRow(text, &control);
    } else {
        form.addRow(text);
        form.addRow(&control);
    }
}

void addEdit(QFormLayout& form, const QString& label, ValueEditBase& edit, const QString& tip, LabelPlace place)
{
    addField(form, label, edit, tip, place);
    auto* note = new InlineNote(InlineNote::Tone::Problem);
    form.addRow(note);
    QObject::connect(&edit, &ValueEditBase::complained, note, [note, &edit](const QString& why) {
        note->say(why);
        edit.setAccessibleDescription(why.isEmpty() ? edit.property(kTipProperty).toString() : why);
    });
}

void setCapability(QWidget& control, bool available, const QString& reasonIfNot)
{
    control.setEnabled(available);
    const QString tip = control.property(kTipProperty).toString();
    control.setToolTip(available ? tip : plainTip(tip + "\n\n" + reasonIfNot));
}

void makeSelectable(QLabel& label)
{
    label.setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    label.setFocusPolicy(Qt::StrongFocus); // Qt leaves it at a click
}

void ignoreWheelUnlessFocused(QWidget& control)
{
    control.setFocusPolicy(Qt::StrongFocus);
    control.installEventFilter(new WheelGuard(&control));
}

InlineNote::InlineNote(Tone tone, QWidget* parent) : QLabel(parent)
{
    setWordWrap(true);
    setTextFormat(Qt::PlainText);
    makeSelectable(*this);
    setProperty("tone", tone == Tone::Problem ? "problem" : "hint"); // the theme's style sheet colours it
    hide();
}

void InlineNote::say(const QString& text)
{
    if (text == this->text() && isHidden() == text.isEmpty()) return;
    setText(text);
    setAccessibleName(text);
    setVisible(!text.isEmpty());
}

} // namespace stagecraft::ui
