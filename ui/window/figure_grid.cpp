// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/figure_grid.h"

#include "ui/bridge/plain_tip.h"

#include <QClipboard>
#include <QGridLayout>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QLabel>

#include <algorithm>

namespace stagecraft::ui {
namespace {

QLabel* newText(Qt::Alignment alignment, const char* tone = nullptr)
{
    auto* label = new QLabel;
    label->setTextFormat(Qt::PlainText);
    label->setAlignment(alignment);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    if (tone) label->setProperty("tone", tone);
    return label;
}

void setTextIfOther(QLabel& label, const QString& text)
{
    if (label.text() != text) label.setText(text);
}

// A long formula breaks behind an operator rather than widen the panel: at spaces without a width.
QString breakable(QString formula)
{
    for (const QChar operation : {QChar('+'), QChar('/'), QChar(0x00B7)}) formula.replace(operation, QString(operation) + QChar(0x200B));
    return formula;
}

} // namespace

QString spokenFigure(const FigureRow& row, const QString& simulatedHead, const QString& otherHead)
{
    QStringList values;
    const auto add = [&values](const QString& head, const QString& value) {
        if (!value.isEmpty()) values << (head.isEmpty() ? value : QStringLiteral("%1 %2").arg(head, value));
    };
    add(FigureGrid::tr("by formula"), row.byFormula);
    add(simulatedHead, row.simulated);
    add(otherHead, row.other);
    const QString said = values.isEmpty() ? FigureGrid::tr("no value") : values.join(QStringLiteral(", "));
    return QStringLiteral("%1: %2; %3").arg(row.name, said, row.formula);
}

FigureGrid::FigureGrid(QWidget* parent)
    : QWidget(parent), grid_(new QGridLayout(this)), simulatedHead_(newText(Qt::AlignRight, "hint")),
      otherHead_(newText(Qt::AlignRight, "hint"))
{
    grid_->setContentsMargins(0, 0, 0, 0);
    grid_->setHorizontalSpacing(12);
    grid_->setVerticalSpacing(0);
    grid_->setColumnStretch(0, 1);
    auto* formulaHead = newText(Qt::AlignRight, "hint");
    formulaHead->setText(tr("formula,\nequal stages"));
    formulaHead->setToolTip(tr("What theory says of the simulated plan, if all its stages took the same time."));
    grid_->addWidget(formulaHead, 0, 1);
    grid_->addWidget(simulatedHead_, 0, 2);
    grid_->addWidget(otherHead_, 0, 3);
}

void FigureGrid::setHeads(const QString& simulated, const QString& other, const QString& otherTip)
{
    setTextIfOther(*simulatedHead_, simulated);
    setTextIfOther(*otherHead_, other);
    otherHead_->setToolTip(plainTip(otherTip));
    speak();
}

int FigureGrid::leastWidth() const
{
    grid_->invalidate();
    return grid_->minimumSize().width();
}

FigureGrid::Line FigureGrid::newLine(int row)
{
    Line line{newText(Qt::AlignLeft, "figure"), newText(Qt::AlignRight, "hint"), newText(Qt::AlignRight), newText(Qt::AlignRight),
              newText(Qt::AlignLeft, "small")};
    line.formula->setWordWrap(true);
    line.name->setFocusPolicy(Qt::ClickFocus);
    line.name->installEventFilter(this);
    grid_->addWidget(line.name, row, 0);
    grid_->addWidget(line.byFormula, row, 1);
    grid_->addWidget(line.simulated, row, 2);
    grid_->addWidget(line.other, row, 3);
    grid_->addWidget(line.formula, row + 1, 0, 1, 4);
    setTabOrder(lines_.empty() ? otherHead_ : lines_.back().name, line.name); // not behind all that the window has by now
    return line;
}

void FigureGrid::setRows(const std::vector<FigureRow>& rows)
{
    if (rows == rows_) return;
    rows_ = rows;
    while (lines_.size() < rows.size()) lines_.push_back(newLine(1 + 2 * static_cast<int>(lines_.size())));
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Line& line = lines_[i];
        const bool used = i < rows.size();
        for (QLabel* label : {line.name, line.byFormula, line.simulated, line.other, line.formula}) label->setVisible(used);
        if (!used) continue;
        const FigureRow& row = rows[i];
        setTextIfOther(*line.name, row.name);
        setTextIfOther(*line.byFormula, row.byFormula);
        setTextIfOther(*line.simulated, row.simulated);
        setTextIfOther(*line.other, row.other);
        setTextIfOther(*line.formula, breakable(row.formula));
        for (QLabel* label : {line.name, line.byFormula, line.simulated, line.other, line.formula}) label->setToolTip(plainTip(row.tip));
        line.name->setAccessibleDescription(row.tip);
    }
    if (!rows.empty()) makeCurrent(std::min(current_, rows.size() - 1));
    speak();
}

void FigureGrid::speak()
{
    const auto head = [](const QLabel& label) { return label.text().replace('\n', ' '); };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const QString spoken = spokenFigure(rows_[i], head(*simulatedHead_), head(*otherHead_));
        if (lines_[i].name->accessibleName() != spoken) lines_[i].name->setAccessibleName(spoken);
    }
}

void FigureGrid::makeCurrent(std::size_t line)
{
    lines_[current_].name->setFocusPolicy(Qt::ClickFocus);
    current_ = line;
    lines_[current_].name->setFocusPolicy(Qt::StrongFocus);
}

bool FigureGrid::eventFilter(QObject* watched, QEvent* event)
{
    const auto at = std::find_if(lines_.begin(), lines_.end(), [watched](const Line& line) { return line.name == watched; });
    if (at == lines_.end()) return false;
    const auto line = static_cast<std::size_t>(at - lines_.begin());
    if (event->type() == QEvent::FocusIn) {
        makeCurrent(line);
        emit lineFocused(at->name);
        return false;
    }
    if (event->type() != QEvent::KeyPress) return false;
    const auto& key = static_cast<const QKeyEvent&>(*event);
    if (key.matches(QKeySequence::Copy) && at->name->selectedText().isEmpty()) {
        QGuiApplication::clipboard()->setText(at->name->accessibleName());
        return true;
    }
    const std::size_t last = rows_.size() - 1;
    std::size_t next = line;
    switch (key.key()) {
    case Qt::Key_Up: next = line > 0 ? line - 1 : 0; break;
    case Qt::Key_Down: next = std::min(line + 1, last); break;
    case Qt::Key_Home: next = 0; break;
    case Qt::Key_End: next = last; break;
    default: return false;
    }
    lines_[next].name->setFocus(Qt::OtherFocusReason);
    return true;
}

} // namespace stagecraft::ui
