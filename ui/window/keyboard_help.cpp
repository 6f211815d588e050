// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/keyboard_help.h"

#include "ui/timeline/timeline_widget.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

namespace stagecraft::ui {
namespace {

QString row(const QString& key, const QString& what)
{
    return QStringLiteral("<tr><td align='right' style='padding:1px 12px 1px 0'><b>%1</b></td><td>%2</td></tr>")
        .arg(key.toHtmlEscaped(), what.toHtmlEscaped());
}

QLabel* column(const QString& title, const QString& rows)
{
    auto* label = new QLabel(QStringLiteral("<h3>%1</h3><table>%2</table>").arg(title, rows));
    label->setTextFormat(Qt::RichText);
    label->setAlignment(Qt::AlignTop);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    label->setAccessibleName(title);
    return label;
}

} // namespace

KeyboardHelp::KeyboardHelp(const std::vector<std::pair<QString, QString>>& windowKeys, QWidget* parent) : QDialog(parent)
{
    setWindowTitle(tr("Keyboard and mouse"));
    setObjectName("keyboardHelp");
    QString ofTimeline;
    for (const TimelineWidget::KeyHelp& key : TimelineWidget::keyHelp()) ofTimeline += row(key.keys, key.what);
    QString ofWindow;
    for (const auto& [what, key] : windowKeys) ofWindow += row(key, what);

    auto* columns = new QHBoxLayout;
    columns->setSpacing(32);
    columns->addWidget(column(tr("Timeline"), ofTimeline));
    columns->addWidget(column(tr("Window"), ofWindow));
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* layout = new QVBoxLayout(this);
    layout->addLayout(columns);
    layout->addWidget(buttons);
}

} // namespace stagecraft::ui
