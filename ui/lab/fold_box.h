// SPDX-License-Identifier: GPL-3.0-or-later
//
// A titled part of a panel that folds away: a header to click or press, and what it holds.
#pragma once

#include <QToolButton>
#include <QWidget>

namespace stagecraft::ui {

class FoldBox : public QWidget {
    Q_OBJECT
public:
    // `title` may hold a mnemonic. Takes over `content`.
    FoldBox(const QString& title, QWidget* content, QWidget* parent = nullptr);

    void setOpen(bool open);
    [[nodiscard]] bool isOpen() const { return header_->isChecked(); }
    [[nodiscard]] QToolButton& header() { return *header_; }

private:
    QToolButton* header_;
    QWidget* content_ = nullptr; // with the margins around it
};

} // namespace stagecraft::ui
