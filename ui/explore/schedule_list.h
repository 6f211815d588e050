// SPDX-License-Identifier: GPL-3.0-or-later
//
// A list of all schedules to check some of, for the windows that set several side by side. A plan's own order has a place in it as
// long as the plan has one.
#pragma once

#include "engine/plan/plan.h"

#include <QListWidget>

#include <string>
#include <vector>

namespace stagecraft::ui {

class ScheduleList : public QListWidget {
    Q_OBJECT
public:
    explicit ScheduleList(QWidget* parent = nullptr);

    void setPlan(const engine::Plan& plan);
    [[nodiscard]] std::vector<std::string> checked() const; // in the list's order
    void check(const std::vector<std::string>& schedules);  // these, and no others

signals:
    void checkedChanged(); // by the user

private:
    QListWidgetItem* add(const QString& title, const QString& name);
};

} // namespace stagecraft::ui
