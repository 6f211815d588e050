// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/schedule_list.h"

#include "ui/bridge/text.h"

#include <QSignalBlocker>

#include <algorithm>

namespace stagecraft::ui {

ScheduleList::ScheduleList(QWidget* parent) : QListWidget(parent)
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) add(toQt(family.title), toQt(family.name))->setToolTip(toQt(family.idea));
    connect(this, &QListWidget::itemChanged, this, &ScheduleList::checkedChanged);
}

QListWidgetItem* ScheduleList::add(const QString& title, const QString& name)
{
    auto* item = new QListWidgetItem(title);
    item->setData(Qt::UserRole, name);
    item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable);
    item->setCheckState(Qt::Unchecked);
    addItem(item);
    return item;
}

void ScheduleList::setPlan(const engine::Plan& plan)
{
    const bool custom = plan.pipeline.schedule == "custom";
    const QListWidgetItem* last = item(count() - 1);
    const bool listed = last && last->data(Qt::UserRole).toString() == QLatin1String("custom");
    const QSignalBlocker quiet(this);
    if (custom && !listed) add(tr("the plan's own order"), QStringLiteral("custom"))->setCheckState(Qt::Checked);
    if (!custom && listed) delete takeItem(count() - 1);
}

std::vector<std::string> ScheduleList::checked() const
{
    std::vector<std::string> names;
    for (int row = 0; row < count(); ++row)
        if (item(row)->checkState() == Qt::Checked) names.push_back(fromQt(item(row)->data(Qt::UserRole).toString()));
    return names;
}

void ScheduleList::check(const std::vector<std::string>& schedules)
{
    const QSignalBlocker quiet(this);
    for (int row = 0; row < count(); ++row) {
        const bool wanted = std::ranges::find(schedules, fromQt(item(row)->data(Qt::UserRole).toString())) != schedules.end();
        item(row)->setCheckState(wanted ? Qt::Checked : Qt::Unchecked);
    }
}

} // namespace stagecraft::ui
