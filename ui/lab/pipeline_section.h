// SPDX-License-Identifier: GPL-3.0-or-later
//
// Schedule, ranks, chunks, micro-batches. A number that the schedule cannot take stays as it was typed; the reason stands
// below it, with a button for the nearest one that it can.
#pragma once

#include "ui/lab/lab_section.h"
#include "ui/lab/nearest_legal.h"

#include <optional>

class QComboBox;
class QLabel;
class QPushButton;
class QSpinBox;

namespace stagecraft::ui {

class InlineNote;

class PipelineSection : public LabSection {
    Q_OBJECT
public:
    static constexpr int kMostRanks = 1024;
    static constexpr int kMostChunks = 64;
    static constexpr int kMostMicrobatches = 100'000;

    explicit PipelineSection(QWidget* parent = nullptr);

protected:
    void showPlan() override;

private:
    void offerSchedules();
    void judge();
    void applyFix();

    QComboBox* schedule_;
    QLabel* idea_;
    QSpinBox* ranks_;
    QSpinBox* chunks_;
    QSpinBox* microbatches_;
    InlineNote* problem_;
    QPushButton* fix_;
    std::optional<engine::PipelineSpec> judged_; // what the verdict below is about
    QString verdict_;                            // why the schedule is not possible; empty: it is
    std::optional<LegalChange> legal_;
};

} // namespace stagecraft::ui
