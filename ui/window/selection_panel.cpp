// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/selection_panel.h"

#include "ui/lab/form.h"
#include "ui/window/kernel_table.h"

#include <QLabel>
#include <QVBoxLayout>

namespace stagecraft::ui {

SelectionPanel::SelectionPanel(QWidget* parent) : QScrollArea(parent), title_(new QLabel), lines_(new QLabel), kernels_(new KernelTable)
{
    QFont bold = title_->font();
    bold.setBold(true);
    title_->setFont(bold);
    title_->setWordWrap(true);
    title_->setTextFormat(Qt::PlainText);
    title_->setObjectName("selectionTitle");
    title_->setToolTip(tr("The selected block or bubble."));
    makeSelectable(*title_);
    lines_->setWordWrap(true);
    lines_->setObjectName("selectionLines");
    lines_->setToolTip(tr("What is known of the selected block or bubble; the text can be selected and copied."));
    lines_->setTextFormat(Qt::RichText);
    lines_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    makeSelectable(*lines_);
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setAccessibleName(tr("Selection"));
    auto* column = new QWidget;
    auto* layout = new QVBoxLayout(column);
    layout->setContentsMargins(10, 8, 10, 8);
    layout->setSpacing(4);
    layout->addWidget(title_);
    layout->addWidget(lines_);
    layout->addWidget(kernels_);
    layout->addStretch(1);
    setWidget(column);
    showDetails({});
    connect(kernels_, &KernelTable::wanted, this, &SelectionPanel::wanted);
}

QString SelectionPanel::title() const { return title_->text(); }
QSize SelectionPanel::sizeHint() const { return {360, 190}; }

void SelectionPanel::showItem(const TimelineScene& scene, const TimelineItem& item)
{
    showDetails(detailsOf(scene, item));
    kernels_->showItem(scene, item);
}

void SelectionPanel::showDetails(const ItemDetails& details)
{
    if (details.title.isEmpty()) {
        title_->setText(tr("Nothing is selected"));
        lines_->setText(tr("Click a block or a bubble to see its times, what it waits for and what waits for it. "
                           "<b>.</b> and <b>,</b> go from block to block; <b>?</b> shows all keys."));
    } else {
        title_->setText(details.title);
        QString html = QStringLiteral("<table cellspacing='0' cellpadding='1'>");
        for (const auto& [name, value] : details.lines)
            html += QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(name.toHtmlEscaped(), value.toHtmlEscaped());
        lines_->setText(html + QStringLiteral("</table>"));
    }
    // What a screen reader says when the text gets the focus: the same, without its form.
    QStringList spoken;
    for (const auto& [name, value] : details.lines) spoken << QStringLiteral("%1: %2").arg(name, value);
    title_->setAccessibleName(title_->text());
    lines_->setAccessibleName(spoken.isEmpty() ? tr("How to select") : spoken.join(QStringLiteral(", ")));
}

} // namespace stagecraft::ui
