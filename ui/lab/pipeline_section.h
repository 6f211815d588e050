// SPDX-License-Identifier: GPL-3.0-or-later
//
// Schedule, ranks, chunks, micro-batches, and what only some schedules take (family_options.h). A number that the schedule cannot take stays as it was typed; the reason stands
// below it, with a button for the nearest one that it can.
#pragma once

#include "ui/lab/lab_section.h"

#include <optional>

class QComboBox;
class QLabel;
class QPushButton;
class QSpinBox;

namespace stagecraft::ui {

class FamilyOptions;
class InlineNote;
class ScheduleText;

class PipelineSection : public LabSection {
    Q_OBJECT
public:
    // What a plan may hold: a control never shows another number than the plan's.
    static constexpr int kMostRanks = engine::kMaxStages;
    static constexpr int kMostChunks = engine::kMaxStages;
    static constexpr int kMostMicrobatches = static_cast<int>(engine::kMaxActions / 2);

    explicit PipelineSection(QWidget* parent = nullptr);

signals:
    void scheduleFileWanted(); // a custom schedule is to be read

protected:
    void showPlan() override;

private:
    void offerSchedules();
    void takeText(const QString& text);
    [[nodiscard]] bool isJudged() const;
    void judge();
    void applyFix();

    QComboBox* schedule_;
    QPushButton* fromFile_;
    QLabel* idea_;
    ScheduleText* text_; // of a custom schedule
    InlineNote* textProblem_;
    QSpinBox* ranks_;
    QSpinBox* chunks_;
    QSpinBox* microbatches_;
    QSpinBox* slices_;
    FamilyOptions* options_ = nullptr;
    InlineNote* problem_;
    QPushButton* fix_;
    std::optional<engine::Plan> judged_;         // what the verdict below is about
    QString verdict_;                            // why the schedule is not possible; empty: it is
    std::optional<engine::LegalChange> legal_;
};

} // namespace stagecraft::ui
