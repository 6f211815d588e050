// SPDX-License-Identifier: GPL-3.0-or-later
//
// The cards of the gallery: every schedule, simulated with one plan, one after the other beside the window. A new plan begins anew;
// until a card's turn comes it keeps its old figures and says that they are old.
//
//   GalleryModel model;
//   model.setPlan(document.plan());
//   model.card(index.row()).entry.figures
#pragma once

#include "engine/explain/schedule_picture.h"
#include "engine/explain/survey.h"
#include "ui/bridge/background_job.h"

#include <QAbstractListModel>

#include <optional>
#include <vector>

namespace stagecraft::ui {

// One schedule. Its trace is let go once the picture is made: a gallery holds two dozen of them.
struct GalleryCard {
    const engine::ScheduleFamily* family = nullptr;
    engine::SurveyEntry entry{};
    engine::SchedulePicture picture{};
    bool known = false;  // it was simulated, or refused, for some plan
    bool current = false; // for the plan of now
};

class GalleryModel : public QAbstractListModel {
    Q_OBJECT
public:
    explicit GalleryModel(QObject* parent = nullptr);

    void setPlan(const engine::Plan& plan); // the same plan again goes on with what is left of it
    void stop();
    [[nodiscard]] bool busy() const { return job_.busy(); }
    [[nodiscard]] const GalleryCard& card(int row) const { return cards_[static_cast<std::size_t>(row)]; }
    [[nodiscard]] int rowOf(const std::string& schedule) const; // -1 where there is none

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    // DisplayRole: the title. ToolTipRole and AccessibleTextRole: the card in words.
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    // "bubble 27.3 %, peak 4 micro-batches, 48 hand-offs"; the reason where it was refused.
    [[nodiscard]] QString words(int row) const;

signals:
    void finished(); // every card is current

private:
    struct Made {
        engine::SurveyEntry entry;
        engine::SchedulePicture picture;
    };
    void goOn();
    void take(std::size_t row, Made made);

    std::vector<GalleryCard> cards_;
    std::optional<engine::Plan> plan_;
    BackgroundJob<Made> job_;
};

} // namespace stagecraft::ui
