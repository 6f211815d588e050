// SPDX-License-Identifier: GPL-3.0-or-later
//
// What actions and transfers take: assumed, estimated from the model, or measured, with the origin shown.
#pragma once

#include "ui/lab/lab_section.h"
#include "ui/lab/quantities.h"
#include "ui/lab/value_edit.h"

#include <functional>

class QComboBox;
class QLabel;
class QTableView;

namespace stagecraft::ui {

class InlineNote;
class StageCostModel;

class CostSection : public LabSection {
    Q_OBJECT
public:
    explicit CostSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    template <class T>
    void bindCost(ValueEdit<T>& edit, const char* name, const QString& what, T engine::CostSpec::*member);
    void bindPart(ValueEdit<MaybeDuration>& edit, const char* name, const QString& what, MaybeDuration engine::CostSpec::*member);

    QComboBox* source_;
    QLabel* origin_;
    ValueEdit<traces::TimeNs>* forward_;
    ValueEdit<traces::TimeNs>* backward_;
    ValueEdit<MaybeDuration>* inputGrad_;
    ValueEdit<MaybeDuration>* weightGrad_;
    ValueEdit<MaybeDuration>* overlap_;
    ValueEdit<MaybeShare>* attention_;
    ValueEdit<double>* flops_;
    ValueEdit<traces::Bytes>* activation_;
    ValueEdit<traces::Bytes>* wgrad_;
    ValueEdit<traces::TimeNs>* latency_;
    ValueEdit<double>* bandwidth_;
    ValueEdit<traces::Bytes>* boundary_;
    ValueEdit<double>* jitter_;
    ValueEdit<std::uint64_t>* seed_;
    InlineNote* problem_;
    StageCostModel* stages_;
    QTableView* table_;
};

} // namespace stagecraft::ui
