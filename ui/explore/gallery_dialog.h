// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gallery: every schedule with the plan's ranks and micro-batches, as a card with a small picture of its step; beside them the one
// that is looked at, with its figures and formulas, conditions, and the names that others have for it. Choosing one is an edit of the
// plan that can be undone. Several can be selected and compared.
//
//   +-------------------------------------+---------------------+
//   | filter                              | 1F1B                |
//   | [card] [card] [card]                | idea, figures, names|
//   | [card] [card] [card]                |                     |
//   +-------------------------------------+---------------------+
//   |                  Compare selected   Use this schedule     |
//   +-----------------------------------------------------------+
#pragma once

#include "ui/explore/gallery_model.h"
#include "ui/theme/theme.h"

#include <QDialog>

class QCheckBox;
class QLabel;
class QLineEdit;
class QListView;
class QPushButton;
class QSortFilterProxyModel;

namespace stagecraft::ui {

class GalleryCardDelegate;
class PlanDocument;

class GalleryDialog : public QDialog {
    Q_OBJECT
public:
    // The document must outlive the dialog.
    explicit GalleryDialog(PlanDocument& document, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    [[nodiscard]] GalleryModel& model() { return model_; }

public slots:
    void useCurrent();  // the schedule that is looked at, in the nearest shape that it takes where the plan's is refused
    void compareSelected();

signals:
    void compareWanted(const std::vector<engine::Plan>& plans);

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void refresh(); // by the document's plan, while it is to be seen
    void showDetails();
    [[nodiscard]] int currentRow() const; // of the model; -1 without
    [[nodiscard]] std::vector<int> selectedRows() const;

    PlanDocument& document_;
    GalleryModel model_;
    QSortFilterProxyModel* filter_;
    GalleryCardDelegate* delegate_;
    QLineEdit* search_;
    QCheckBox* possible_;
    QListView* view_;
    QLabel* details_;
    QLabel* legend_;
    QLabel* progress_;
    QPushButton* use_;
    QPushButton* compare_;
};

} // namespace stagecraft::ui
