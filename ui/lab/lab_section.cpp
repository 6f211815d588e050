// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/lab_section.h"

#include "ui/bridge/plain_tip.h"
#include "ui/lab/form.h"

#include <QFormLayout>
#include <QLineEdit>
#include <QScopedValueRollback>
#include <QStandardItemModel>
#include <QToolTip>

namespace stagecraft::ui {
namespace {

constexpr int kOwnTipRole = Qt::UserRole + 1; // of a choice, while the reason why it cannot be made stands in its place

} // namespace

LabSection::LabSection(QWidget* parent) : QWidget(parent) {}

void LabSection::setPlan(const engine::Plan& plan)
{
    const QScopedValueRollback guard(showing_, true);
    plan_ = plan;
    showPlan();
}

QFormLayout* LabSection::newForm()
{
    auto* form = new QFormLayout;
    form->setContentsMargins(0, 0, 0, 0);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->setLabelAlignment(Qt::AlignLeft);
    form->setHorizontalSpacing(10);
    form->setVerticalSpacing(5);
    return form;
}

QSpinBox* LabSection::newSpin(int least, int most)
{
    auto* spin = new QSpinBox;
    spin->setRange(least, most);
    spin->setAccelerated(true);
    ignoreWheelUnlessFocused(*spin);
    // A key that would lead beyond the limits does nothing; say why.
    const QString allowed = tr("%L1 to %L2 is allowed").arg(least).arg(most);
    connect(spin->findChild<QLineEdit*>(), &QLineEdit::inputRejected, spin, [spin, allowed] {
        QToolTip::showText(spin->mapToGlobal(QPoint(0, spin->height())), allowed, spin);
    });
    return spin;
}

QComboBox* LabSection::newCombo()
{
    auto* combo = new QComboBox;
    combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    combo->setMinimumContentsLength(8);
    ignoreWheelUnlessFocused(*combo);
    return combo;
}

void LabSection::setItemEnabled(QComboBox& combo, const QVariant& data, bool enabled, const QString& reasonIfNot)
{
    QStandardItem* item = qobject_cast<QStandardItemModel*>(combo.model())->item(combo.findData(data));
    if (item->isEnabled()) item->setData(item->toolTip(), kOwnTipRole);
    item->setEnabled(enabled);
    item->setToolTip(enabled ? item->data(kOwnTipRole).toString() : plainTip(reasonIfNot));
}

void LabSection::select(QComboBox& combo, const QVariant& data) { combo.setCurrentIndex(combo.findData(data)); }

} // namespace stagecraft::ui
