// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/form.h"

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

void addField(QFormLayout& form, const QString& label, QWidget& control, const QString& tip)
{
    auto* text = new QLabel(label);
    text->setBuddy(&control);
    text->setToolTip(tip);
    QString name = label;
    name.remove('&');
    describe(control, name, tip);
    form.addRow(text, &control);
}

void setCapability(QWidget& control, bool available, const QString& reasonIfNot)
{
    control.setEnabled(available);
    const QString tip = control.property(kTipProperty).toString();
    control.setToolTip(available ? tip : tip + "\n\n" + reasonIfNot);
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
    setTextInteractionFlags(Qt::TextSelectableByMouse);
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
