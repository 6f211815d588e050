// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/search_bar.h"

#include "ui/bridge/plain_tip.h"

#include <QAccessible>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QStyle>
#include <QToolButton>

namespace stagecraft::ui {

SearchBar::SearchBar(QWidget* parent) : QFrame(parent), field_(new QLineEdit), result_(new QLabel)
{
    setObjectName("searchBar");
    setAutoFillBackground(true);
    setFrameShape(QFrame::NoFrame);
    const QString tip =
        tr("<p>Finds blocks that fulfil every term; capitals do not matter.</p><table cellspacing='3'>"
           "<tr><td><b>0F0</b>, <b>3SEND_F1</b></td><td>the block of that name</td></tr>"
           "<tr><td><b>F3</b>, <b>1B</b></td><td>forward of micro-batch 3 on any stage, any backward of stage 1</td></tr>"
           "<tr><td><b>forward</b>, <b>send</b>, <b>optimizer</b></td><td>a kind of block, or a part of its name</td></tr>"
           "<tr><td><b>stage 2</b>, <b>rank 1</b>, <b>mb 3-7</b>, <b>step 4</b></td><td>where and what of; mb: "
           "micro-batch</td></tr>"
           "<tr><td><b>stage 2 send</b></td><td>both at once</td></tr></table>"
           "<p>Enter goes to the next match, Shift + Enter to the previous one, Esc back to the timeline.</p>");
    auto* label = new QLabel(tr("Find"));
    label->setBuddy(field_);
    label->setToolTip(tip);
    field_->setObjectName("searchField");
    field_->setPlaceholderText(syntax());
    field_->setToolTip(tip);
    field_->setClearButtonEnabled(true);
    field_->setMinimumWidth(60);
    field_->setAccessibleName(tr("Find blocks"));
    field_->installEventFilter(this);
    result_->setObjectName("searchResult");
    result_->setTextFormat(Qt::PlainText);
    result_->setMinimumWidth(1); // gives way where there is little room, and says it all in its tooltip
    result_->setAccessibleName(tr("Matches"));
    previous_ = newButton(QStringLiteral("\u2039"), tr("Previous match"),
                          tr("Goes to the previous match (Shift + Enter, Shift + F3; N with Shift in the timeline)."));
    next_ =
        newButton(QStringLiteral("\u203a"), tr("Next match"), tr("Goes to the next match (Enter, F3; N in the timeline)."));
    QToolButton* close = newButton(QStringLiteral("\u00d7"), tr("Close the search"), tr("Closes the search (Esc)."));

    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 3, 6, 3);
    layout->setSpacing(6);
    layout->addWidget(label);
    layout->addWidget(field_, 3);
    layout->addWidget(previous_);
    layout->addWidget(next_);
    layout->addWidget(result_, 2);
    layout->addWidget(close);
    connect(field_, &QLineEdit::textChanged, this, &SearchBar::textChanged);
    connect(next_, &QToolButton::clicked, this, &SearchBar::nextWanted);
    connect(previous_, &QToolButton::clicked, this, &SearchBar::previousWanted);
    connect(close, &QToolButton::clicked, this, &SearchBar::closeWanted);
    setMatches(false);
}

QString SearchBar::syntax() { return tr("0F0, F3, send, stage 2, rank 1, mb 3, ..."); }

QToolButton* SearchBar::newButton(const QString& face, const QString& name, const QString& tip)
{
    auto* button = new QToolButton;
    button->setText(face);
    button->setAutoRaise(true);
    button->setAccessibleName(name);
    button->setToolTip(tip);
    button->setFocusPolicy(Qt::TabFocus);
    return button;
}

QString SearchBar::text() const { return field_->text(); }

void SearchBar::edit()
{
    field_->setFocus(Qt::ShortcutFocusReason);
    field_->selectAll();
}

void SearchBar::setResult(const QString& text, Tone tone)
{
    if (text == result_->text() && result_->property("tone").toString().isEmpty() == (tone == Tone::Plain)) return;
    result_->setText(text);
    result_->setToolTip(plainTip(text));
    result_->setProperty("tone", tone == Tone::Problem ? QStringLiteral("problem") : QString());
    result_->style()->polish(result_);
    // Who hears the screen rather than sees it stays in the field.
    field_->setAccessibleDescription(text);
    QAccessibleEvent told(field_, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&told);
}

void SearchBar::setMatches(bool any)
{
    previous_->setEnabled(any);
    next_->setEnabled(any);
}

bool SearchBar::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != field_ || event->type() != QEvent::KeyPress) return QFrame::eventFilter(watched, event);
    const auto& key = *static_cast<QKeyEvent*>(event);
    switch (key.key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter: key.modifiers() & Qt::ShiftModifier ? emit previousWanted() : emit nextWanted(); return true;
    case Qt::Key_Escape: emit closeWanted(); return true;
    default: return QFrame::eventFilter(watched, event);
    }
}

} // namespace stagecraft::ui
