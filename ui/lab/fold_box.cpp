// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/fold_box.h"

#include <QVBoxLayout>

namespace stagecraft::ui {

FoldBox::FoldBox(const QString& title, QWidget* content, QWidget* parent)
    : QWidget(parent), header_(new QToolButton)
{
    QString name = title;
    name.remove('&');
    header_->setText(title);
    header_->setAccessibleName(name);
    header_->setToolTip(tr("Folds this part of the panel away, or shows it again."));
    header_->setCheckable(true);
    header_->setChecked(true);
    header_->setArrowType(Qt::DownArrow);
    header_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    header_->setAutoRaise(true);
    header_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    header_->setProperty("foldHeader", true);
    QFont bold = header_->font();
    bold.setBold(true);
    header_->setFont(bold);
    connect(header_, &QToolButton::toggled, this, &FoldBox::setOpen);
    // its margins belong to the content: folded away, a box is its header alone
    content_ = new QWidget;
    auto* inner = new QVBoxLayout(content_);
    inner->setContentsMargins(8, 2, 4, 8);
    inner->addWidget(content);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(2);
    layout->addWidget(header_);
    layout->addWidget(content_);
}

void FoldBox::setOpen(bool open)
{
    header_->setChecked(open);
    header_->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
    content_->setVisible(open);
}

} // namespace stagecraft::ui
