// SPDX-License-Identifier: GPL-3.0-or-later
//
// A text field for a quantity with its unit: "1.5ms", "25 GB/s", "1, 1, 1.5, 0.5". It tells of every value that can be read
// while it is typed; a text that cannot be read turns the field red, says why, and changes nothing.
//
//   auto* forward = new ValueEdit<TimeNs>(parseDuration, showDuration);
//   forward->edited = [this](TimeNs t) { ... };
//   forward->setValue(plan.costs.forward);      // leaves alone what is being typed and means the same, or cannot be read
#pragma once

#include "traces/base/expected.h"

#include <QLineEdit>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft::ui {

class ValueEditBase : public QLineEdit {
    Q_OBJECT
public:
    explicit ValueEditBase(QWidget* parent = nullptr);
    [[nodiscard]] const QString& complaint() const { return complaint_; }
    virtual void restore() = 0; // shows the last value that could be read

signals:
    void complained(const QString& why); // empty: it can be read again

protected:
    virtual QString readText() = 0; // takes the text over; the complaint, or empty
    void focusOutEvent(QFocusEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override; // Escape restores
    void setComplaint(const QString& why);

private:
    QString complaint_;
};

template <class T>
class ValueEdit : public ValueEditBase {
public:
    using Parse = std::function<traces::Expected<T>(std::string_view)>;
    using Show = std::function<std::string(const T&)>;

    ValueEdit(Parse parse, Show show, QWidget* parent = nullptr)
        : ValueEditBase(parent), parse_(std::move(parse)), show_(std::move(show))
    {
    }

    std::function<void(const T&)> edited;

    void setValue(const T& value)
    {
        // What cannot be read stays, with its reason, until it is mended or the value itself becomes another.
        if (!complaint().isEmpty() && value == value_) return;
        const bool typing = hasFocus() && isModified();
        value_ = value;
        if (typing) {
            const traces::Expected<T> typed = parse_(text().toStdString());
            if (typed.ok() && typed.value() == value) return;
        }
        restore();
    }
    [[nodiscard]] const T& value() const { return value_; }
    void restore() override
    {
        const QString shown = QString::fromStdString(show_(value_));
        if (shown != text()) setText(shown);
        setModified(false);
        setComplaint({});
    }

protected:
    QString readText() override
    {
        const traces::Expected<T> typed = parse_(text().toStdString());
        if (!typed.ok()) return QString::fromStdString(typed.error().message);
        if (typed.value() != value_) {
            value_ = typed.value();
            if (edited) edited(value_);
        }
        return {};
    }

private:
    Parse parse_;
    Show show_;
    T value_{};
};

} // namespace stagecraft::ui
