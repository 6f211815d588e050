// SPDX-License-Identifier: GPL-3.0-or-later
//
// The field under the lanes that says what to look for, how much of it there is, and where one is:
//
//   Find [ stage 2 send            ]  3 of 17  [<] [>]                      [x]
//
//   SearchBar bar(timeline);
//   connect(&bar, &SearchBar::textChanged, &search, &TimelineSearch::setText);
//   bar.setResult(tr("3 of 17"), SearchBar::Tone::Found);
#pragma once

#include <QFrame>
#include <QString>

class QLabel;
class QLineEdit;
class QToolButton;

namespace stagecraft::ui {

class SearchBar : public QFrame {
    Q_OBJECT
public:
    enum class Tone : std::uint8_t { Plain, Problem };

    explicit SearchBar(QWidget* parent = nullptr);

    // What can be searched for, in a line: "0F0, F3, send, stage 2, ..."
    static QString syntax();

    [[nodiscard]] QString text() const;
    void edit(); // takes the focus, with all of the text selected
    void setResult(const QString& text, Tone tone = Tone::Plain);
    void setMatches(bool any); // whether there is somewhere to go to

    bool eventFilter(QObject* watched, QEvent* event) override;

signals:
    void textChanged(const QString& text);
    void nextWanted();
    void previousWanted();
    void closeWanted();

private:
    QToolButton* newButton(const QString& face, const QString& name, const QString& tip);

    QLineEdit* field_;
    QLabel* result_;
    QToolButton* previous_;
    QToolButton* next_;
};

} // namespace stagecraft::ui
