// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/kernel_table.h"

#include "traces/analysis/device_time.h"
#include "traces/analysis/memory_operations.h"
#include "traces/base/text.h"
#include "traces/base/units.h"
#include "ui/bridge/plain_tip.h"
#include "ui/bridge/text.h"
#include "ui/explore/text_table.h"
#include "ui/lab/form.h"

#include <QHeaderView>
#include <QLabel>
#include <QVBoxLayout>

#include <algorithm>
#include <optional>

namespace stagecraft::ui {

using traces::formatDuration;
using traces::KernelGroup;

namespace {

constexpr int kMostRows = 12; // seen at a time

QString shareText(traces::TimeNs part, traces::TimeNs whole) { return QString::number(100.0 * static_cast<double>(part) / static_cast<double>(std::max<traces::TimeNs>(whole, 1)), 'f', 1) + QStringLiteral(" %"); }

// Lines of name, time and share.
std::vector<QStringList> linesOf(const traces::DeviceTime& time)
{
    std::vector<QStringList> lines;
    const auto add = [&](const QString& name, traces::TimeNs part) {
        if (part > 0) lines.push_back({name, toQt(formatDuration(part)), shareText(part, time.span)});
    };
    add(KernelTable::tr("Kernels"), time.kernels);
    add(KernelTable::tr("Copies that no kernel hides"), time.copies);
    add(KernelTable::tr("Kernels of NCCL alone"), time.exchanges);
    for (const traces::StreamGapCause cause : traces::kStreamGapCauses) {
        const std::string_view text = traces::streamGapText(cause);
        add(KernelTable::tr("Gaps: %1").arg(QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()))), time.gap(cause));
    }
    add(KernelTable::tr("Gaps: cause not recorded"), time.notKnown);
    if (time.copying > 0) lines.push_back({KernelTable::tr("Hidden of %1 of copies").arg(toQt(formatDuration(time.copying))), toQt(formatDuration(time.hidden)), shareText(time.hidden, time.copying)});
    const traces::NcclTime& nccl = time.nccl;
    const auto ofNccl = [&](const QString& name, traces::TimeNs part) {
        if (part > 0) lines.push_back({name.arg(toQt(formatDuration(nccl.all()))), toQt(formatDuration(part)), shareText(part, nccl.all())});
    };
    ofNccl(KernelTable::tr("Waiting of %1 of NCCL"), nccl.waiting);
    ofNccl(KernelTable::tr("Moving of %1 of NCCL"), nccl.moving);
    ofNccl(KernelTable::tr("Not known of %1 of NCCL"), nccl.notKnown);
    return lines;
}

// "Of the driver's memory: 2 allocations, 22 MiB; 1 release, 2 MiB; 1.2 ms in calls"; empty where there is none.
QString memoryLine(const traces::MemoryOperations& operations)
{
    QStringList parts;
    const auto add = [&](std::int64_t count, const char* what, traces::Bytes bytes) {
        if (count > 0) parts << toQt(traces::counted(count, what) + ", " + traces::formatSize(bytes));
    };
    add(operations.allocations, "allocation", operations.allocated);
    add(operations.releases, "release", operations.released);
    if (parts.isEmpty()) return {};
    return KernelTable::tr("Of the driver's memory: %1; %2 in calls").arg(parts.join(QStringLiteral("; ")), toQt(formatDuration(operations.inCalls)));
}

} // namespace

KernelTable::KernelTable(QWidget* parent) : QWidget(parent), time_(new QLabel), title_(new QLabel), memory_(new QLabel), table_(new TextTable(tr("Kernels"), {.leftColumns = 1}))
{
    time_->setObjectName("deviceTime");
    time_->setTextFormat(Qt::RichText);
    time_->setWordWrap(true);
    time_->setToolTip(tr("Where the time of the block went on its device: every moment is one of these. Copies are hidden while a kernel of the same GPU is at work."));
    makeSelectable(*time_);
    title_->setObjectName("kernelTitle");
    title_->setTextFormat(Qt::PlainText);
    title_->setWordWrap(true);
    title_->setProperty("tone", "hint");
    title_->setToolTip(tr("Kernels and copies that began on the rank's streams while the block lasted, or the operators of LibTorch that its thread called; a share is of the time of all of them."));
    makeSelectable(*title_);
    memory_->setObjectName("driverMemory");
    memory_->setTextFormat(Qt::PlainText);
    memory_->setWordWrap(true);
    memory_->setToolTip(tr("Calls that took memory from the GPU's driver or gave it back while the thread worked for the block: LibTorch's for its reserve, and libraries'."));
    makeSelectable(*memory_);
    table_->setObjectName("kernelTable");
    describe(*table_, tr("Kernels"), tr("What the device did in the block, by name; a click or Enter goes to the longest of a name."));
    table_->setShowGrid(false);
    table_->setWordWrap(false);
    table_->setTextElideMode(Qt::ElideMiddle); // what tells the names of templates apart is often at their end
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 4);
    connect(table_, &QTableWidget::cellClicked, this, [this](int row, int) { goTo(row); });
    connect(table_, &QTableWidget::cellActivated, this, [this](int row, int) { goTo(row); });
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 8, 0, 0);
    layout->setSpacing(4);
    layout->addWidget(time_);
    layout->addWidget(memory_);
    layout->addWidget(title_);
    layout->addWidget(table_);
    hide();
}

void KernelTable::showItem(const TimelineScene& scene, const TimelineItem& item)
{
    const bool slice = item.kind == TimelineItem::Kind::Slice && item.source >= 0 && item.source < scene.sourceCount();
    const traces::Trace* trace = slice ? &scene.trace(item.source) : nullptr;
    const bool known = trace && index(item.slice.lane) < trace->laneCount() && item.slice.index < trace->lane(item.slice.lane).size();
    const std::optional<traces::SliceRef> block = known ? traces::blockOf(*trace, item.slice) : std::nullopt;
    groups_ = block ? traces::kernelsOf(*trace, *block) : std::vector<KernelGroup>{};
    setVisible(!groups_.empty());
    if (groups_.empty()) return;
    TimelineItem shown = item;
    shown.slice = *block;
    const QString memory = memoryLine(traces::memoryOperationsOf(*trace, *block));
    memory_->setText(memory);
    memory_->setVisible(!memory.isEmpty());

    const bool operators = holdsOperators(trace->lane(groups_.front().longest.lane).info());
    std::vector<QStringList> rows{{operators ? tr("Operator") : tr("Kernel"), tr("n"), tr("Total"), tr("Share"), tr("Longest")}};
    std::size_t count = 0;
    traces::TimeNs total = 0;
    for (const KernelGroup& group : groups_) {
        count += group.count;
        total += group.total;
        rows.push_back({toQt(trace->text(group.name)), QString::number(group.count), toQt(formatDuration(group.total)),
                        QString::number(100 * group.share, 'f', 1) + QStringLiteral(" %"), toQt(formatDuration(trace->slice(group.longest).duration()))});
    }
    if (shown == block_ && rows == rows_) return; // the chosen row stays
    block_ = shown;
    rows_ = rows;
    time_->setVisible(!operators);
    if (const std::optional<traces::DeviceTime> time = traces::deviceTimeOf(*trace, *block)) {
        QString html = QStringLiteral("<b>%1</b><table cellspacing='0' cellpadding='1'>").arg(tr("On the device"));
        QStringList spoken;
        for (const QStringList& line : linesOf(*time)) {
            html += QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td align='right' style='padding-right:10px'>%2</td><td align='right'>%3</td></tr>")
                        .arg(line[0].toHtmlEscaped(), line[1], line[2]);
            spoken << line.join(QLatin1Char(' '));
        }
        time_->setText(html + QStringLiteral("</table>"));
        time_->setAccessibleName(tr("On the device: %1").arg(spoken.join(QStringLiteral(", "))));
    }
    title_->setText((operators ? tr("Operators of %1: %2, %3 together") : tr("Kernels of %1: %2, %3 together")).arg(toQt(trace->sliceName(*block))).arg(count).arg(toQt(formatDuration(total))));
    table_->setTexts(rows);
    for (int row = 0; row < table_->rowCount(); ++row) table_->item(row, 0)->setToolTip(plainTip(rows[static_cast<std::size_t>(row) + 1].front()));
    table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch); // names are long, figures are to be seen
    table_->setFixedHeight(table_->horizontalHeader()->sizeHint().height() + std::min(table_->rowCount(), kMostRows) * table_->verticalHeader()->defaultSectionSize());
}

void KernelTable::goTo(int row)
{
    TimelineItem longest = block_;
    longest.slice = groups_[static_cast<std::size_t>(row)].longest;
    emit wanted(longest);
}

} // namespace stagecraft::ui
