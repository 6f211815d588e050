// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/path_field.h"

#include "traces/base/text.h"
#include "ui/bridge/text.h"
#include "ui/lab/form.h"

#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>

namespace stagecraft::ui {
namespace {

traces::Expected<std::string> parsePath(std::string_view text) { return std::string(traces::trimmed(text, traces::kLineBlanks)); }
std::string showPath(const std::string& path) { return path; }

} // namespace

PathField::PathField(Kind kind, const QString& name, QWidget* parent)
    : QWidget(parent), edit_(new ValueEdit<std::string>(parsePath, showPath)), button_(new QPushButton(tr("Browse…")))
{
    setObjectName(name + QStringLiteral("Field"));
    button_->setObjectName(name + QStringLiteral("Browse"));
    edit_->setClearButtonEnabled(true);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    row->addWidget(edit_, 1);
    row->addWidget(button_);
    chooser_ = [this, kind](const QString& title, const QString& present) {
        return kind == Kind::Folder ? QFileDialog::getExistingDirectory(this, title, present) : QFileDialog::getOpenFileName(this, title, present);
    };
    connect(button_, &QPushButton::clicked, this, &PathField::choose);
}

void PathField::choose()
{
    const QString path = chooser_(edit_->accessibleName(), toQt(edit_->value()));
    if (path.isEmpty()) return;
    edit_->setValue(fromQt(path));
    if (edit_->edited) edit_->edited(fromQt(path));
}

void PathField::setAvailable(bool available, const QString& reasonIfNot)
{
    setCapability(*edit_, available, reasonIfNot);
    setCapability(*button_, available, reasonIfNot);
}

void addPath(QFormLayout& form, const QString& label, PathField& field, const QString& tip)
{
    form.addRow(newLabel(label, field.edit(), tip));
    form.addRow(&field);
    const QString name = field.edit().accessibleName();
    describe(field.button(), PathField::tr("Browse: %1").arg(name), PathField::tr("Opens a dialog to choose it on this machine."));
}

} // namespace stagecraft::ui
