// SPDX-License-Identifier: GPL-3.0-or-later
//
// The lab: every control that edits the plan, in a column that scrolls. It shows the document's plan and hands edits to it.
#pragma once

#include "ui/lab/plan_document.h"

#include <QScrollArea>
#include <QStringList>

#include <vector>

class QComboBox;
class QLabel;

namespace stagecraft::ui {

class FoldBox;
class LabSection;
class RunSection;

class LabPanel : public QScrollArea {
    Q_OBJECT
public:
    // The document must outlive the panel.
    explicit LabPanel(PlanDocument& document, QWidget* parent = nullptr);

    [[nodiscard]] RunSection& runSection() { return *run_; }
    // Names of the parts that are folded away, to be kept with the layout.
    [[nodiscard]] QStringList foldedSections() const;
    [[nodiscard]] static QStringList foldedAtFirst(); // what most plans do without
    void setFoldedSections(const QStringList& names);
    QSize sizeHint() const override;

signals:
    void presetChosen(const QString& name); // a new document is wanted
    void scheduleFileWanted();              // a custom schedule is to be read

private:
    void showPlan();

    PlanDocument& document_;
    QComboBox* preset_;
    QLabel* description_;
    RunSection* run_;
    std::vector<LabSection*> sections_;
    std::vector<FoldBox*> boxes_;
};

} // namespace stagecraft::ui
