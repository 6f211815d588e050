// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/order_bar.h"

#include "ui/lab/form.h"
#include "ui/window/order_editor.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStyle>

namespace stagecraft::ui {

OrderBar::OrderBar(OrderEditor& editor, QWidget* parent)
    : QWidget(parent), text_(new QLabel), keep_(new QCheckBox(tr("Keep deadlocks"))) // no letter with Alt is free: the menus and the lab have all of these
{
    setObjectName("orderBar");
    text_->setWordWrap(true);
    text_->setTextFormat(Qt::PlainText);
    text_->setObjectName("orderText");
    keep_->setObjectName("keepIllegal");
    describe(*keep_, tr("Keep deadlocks"),
             tr("Takes an order in which ranks wait for each other, to see how far it runs and where it stands still."));
    keep_->setChecked(editor.keepsIllegal());
    connect(keep_, &QCheckBox::toggled, &editor, &OrderEditor::setKeepsIllegal);
    connect(&editor, &OrderEditor::keepsIllegalChanged, keep_, &QCheckBox::setChecked);
    auto* save = new QPushButton(tr("Save…"));
    save->setObjectName("saveSchedule");
    describe(*save, tr("Save schedule"), tr("Writes the order of every rank into a file, in PyTorch's action text."));
    connect(save, &QPushButton::clicked, this, &OrderBar::saveWanted);
    auto* end = new QPushButton(tr("Done"));
    end->setObjectName("orderDone");
    describe(*end, tr("Done"), tr("Ends the editing of the order; what was changed stays."));
    connect(end, &QPushButton::clicked, this, &OrderBar::done);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(10, 3, 10, 3);
    row->addWidget(text_, 1);
    row->addWidget(keep_);
    row->addWidget(save);
    row->addWidget(end);
    say({});
}

void OrderBar::say(const QString& text)
{
    text_->setText(text.isEmpty() ? tr("Drag a block within its rank, or move the selected one: Ctrl+←, Ctrl+→") : text);
    text_->setProperty("tone", text.isEmpty() ? QString() : QStringLiteral("problem"));
    text_->style()->unpolish(text_);
    text_->style()->polish(text_);
}

} // namespace stagecraft::ui
