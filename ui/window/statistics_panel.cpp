// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/statistics_panel.h"

#include "ui/bridge/text.h"
#include "ui/explore/text_table.h"
#include "ui/lab/form.h"
#include "ui/plots/duration_histogram.h"
#include "ui/timeline/item_identity.h"
#include "ui/window/statistics_model.h"
#include "ui/window/workbench.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

using traces::ActionStatistics;
using traces::formatDuration;
using traces::Trace;

namespace {

constexpr std::size_t kIntervals = 40; // of a histogram
constexpr int kMeasuredRows = 50;      // that the widths of columns go by: there may be many thousands

// Keeps room for the arrow of order in the section alone that has it: there is little.
class NarrowHeader : public QHeaderView {
public:
    using QHeaderView::QHeaderView;

protected:
    QSize sectionSizeFromContents(int section) const override
    {
        constexpr int kPadding = 10;
        constexpr int kArrow = 14;
        QSize size = QHeaderView::sectionSizeFromContents(section);
        size.setWidth(fontMetrics().horizontalAdvance(model()->headerData(section, Qt::Horizontal).toString()) + kPadding +
                      (section == sortIndicatorSection() ? kArrow : 0));
        return size;
    }
};

TimelineItem itemOf(const TimelineScene& scene, const std::shared_ptr<const Trace>& trace, traces::SliceRef slice)
{
    for (int source = 0; source < scene.sourceCount(); ++source) {
        if (scene.sources()[static_cast<std::size_t>(source)].trace != trace || scene.drawnAsOutline(source)) continue;
        const std::optional<int> segment = segmentHolding(scene, source, trace->slice(slice).begin, 0);
        if (segment) return {.kind = TimelineItem::Kind::Slice, .source = source, .segment = *segment, .slice = slice};
    }
    return {};
}

} // namespace

StatisticsPanel::StatisticsPanel(Workbench& workbench, QWidget* parent)
    : QWidget(parent), workbench_(workbench), theme_(Theme::of(ThemeKind::Light)), source_(new QComboBox), scope_(new QLabel), model_(new StatisticsModel(this)),
      ordered_(new QSortFilterProxyModel(this)), table_(new QTableView), histogram_(new DurationHistogram), lower_(new QWidget), farOutTitle_(new QLabel), farOut_(new QListWidget),
      devices_(new QWidget), deviceTable_(new TextTable(tr("Time on the devices"), {}))
{
    setObjectName("statistics");
    setAccessibleName(tr("Statistics"));
    source_->setObjectName("statisticsSource");
    scope_->setObjectName("statisticsScope");
    table_->setObjectName("statisticsTable");
    farOutTitle_->setObjectName("farOutTitle");
    farOut_->setObjectName("farOut");

    ignoreWheelUnlessFocused(*source_);
    QLabel* label = newLabel(tr("Trace"), *source_, tr("Whose actions are counted: those of the simulation, or of the trace beside it."));
    scope_->setWordWrap(true);
    scope_->setTextFormat(Qt::PlainText);
    scope_->setProperty("tone", "hint");
    makeSelectable(*scope_);

    ordered_->setSourceModel(model_);
    ordered_->setSortRole(StatisticsModel::kSortRole);
    auto* header = new NarrowHeader(Qt::Horizontal);
    header->setSectionsClickable(true);
    header->setHighlightSections(false);
    header->setMinimumSectionSize(24);
    header->setResizeContentsPrecision(kMeasuredRows);
    table_->setHorizontalHeader(header);
    table_->setModel(ordered_);
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    table_->setSortingEnabled(true);
    table_->sortByColumn(StatisticsModel::ActionColumn, Qt::AscendingOrder);
    table_->setShowGrid(false);
    table_->setFrameShape(QFrame::NoFrame);
    table_->setAlternatingRowColors(true);
    table_->setTabKeyNavigation(false);
    table_->setWordWrap(false);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 4);
    QFont small = table_->font(); // all columns beside each other in a narrow window
    small.setPointSizeF(small.pointSizeF() - 1);
    table_->setFont(small);
    deviceTable_->setFont(small);
    table_->horizontalHeader()->setFont(small);
    table_->setIconSize({8, 8});
    describe(*table_, tr("Durations by stage and kind"), tr("How long the actions of each stage and kind took; the chosen row's histogram stands below."));
    describe(*farOut_, tr("Far out"), tr("Actions that took far longer than their like; Enter or a click goes to the block on the timeline."));
    farOut_->setFrameShape(QFrame::NoFrame);
    farOut_->setUniformItemSizes(true);
    farOut_->setTextElideMode(Qt::ElideRight);
    farOutTitle_->setTextFormat(Qt::PlainText);
    farOutTitle_->setProperty("tone", "hint");
    farOutTitle_->setToolTip(tr("Longer than the upper quartile by more than three times the distance of the quartiles (Tukey)."));

    auto* lowerLayout = new QVBoxLayout(lower_);
    lowerLayout->setContentsMargins(0, 0, 0, 0);
    lowerLayout->setSpacing(4);
    lowerLayout->addWidget(farOutTitle_);
    lowerLayout->addWidget(farOut_, 1);
    auto* devicesTitle = new QLabel(tr("On the devices, in % of the time of each rank's blocks"));
    devicesTitle->setProperty("tone", "hint");
    devicesTitle->setWordWrap(true);
    deviceTable_->setObjectName("deviceTable");
    describe(*deviceTable_, tr("Time on the devices"), tr("Where the time of each rank's blocks went on its device, by the kernels that were recorded."));
    auto* devicesHeader = new NarrowHeader(Qt::Horizontal);
    devicesHeader->setMinimumSectionSize(24);
    devicesHeader->setFont(small);
    deviceTable_->setHorizontalHeader(devicesHeader);
    deviceTable_->setShowGrid(false);
    deviceTable_->setSelectionMode(QAbstractItemView::NoSelection);
    deviceTable_->verticalHeader()->setDefaultSectionSize(deviceTable_->fontMetrics().height() + 4);
    auto* devicesLayout = new QVBoxLayout(devices_);
    devicesLayout->setContentsMargins(0, 0, 0, 0);
    devicesLayout->setSpacing(4);
    devicesLayout->addWidget(devicesTitle);
    devicesLayout->addWidget(deviceTable_);
    auto* parts = new QSplitter(Qt::Vertical);
    parts->addWidget(table_);
    parts->addWidget(histogram_);
    parts->addWidget(lower_);
    parts->setChildrenCollapsible(false);
    parts->setStretchFactor(0, 3);
    parts->setStretchFactor(1, 2);
    parts->setStretchFactor(2, 2);
    auto* top = new QHBoxLayout;
    top->addWidget(label);
    top->addWidget(source_);
    top->addStretch(1);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 8);
    layout->setSpacing(6);
    layout->addLayout(top);
    layout->addWidget(scope_);
    layout->addWidget(parts, 1);
    layout->addWidget(devices_);

    later_.setSingleShot(true);
    connect(&later_, &QTimer::timeout, this, &StatisticsPanel::refresh);
    connect(&workbench_.scene(), &TimelineScene::sourcesChanged, this, [this] {
        listSources();
        refreshAtOnce();
    });
    connect(&workbench_.scene(), &TimelineScene::dataChanged, this, &StatisticsPanel::refresh);
    connect(source_, &QComboBox::activated, this, [this] {
        role_ = static_cast<SourceRole>(source_->currentData().toInt());
        refreshAtOnce();
    });
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &StatisticsPanel::showRow);
    connect(farOut_, &QListWidget::itemActivated, this, [this](QListWidgetItem* item) { goTo(farOut_->row(item)); });
    connect(farOut_, &QListWidget::itemClicked, this, [this](QListWidgetItem* item) { goTo(farOut_->row(item)); });
    connect(histogram_, &DurationHistogram::pressed, this, &StatisticsPanel::pressed);
    listSources();
    take({});
}

bool StatisticsPanel::busy() const { return job_.busy() || later_.isActive() || (outdated_ && !visibleRegion().isEmpty()); }

QSize StatisticsPanel::sizeHint() const { return {360, 520}; }

void StatisticsPanel::setTheme(const Theme& theme)
{
    theme_ = theme;
    model_->setTheme(theme);
    histogram_->setTheme(theme);
    showRow();
}

// The trace beside the simulated one is what a user came for, where there is one.
void StatisticsPanel::listSources()
{
    const QSignalBlocker quiet(source_);
    source_->clear();
    for (const TraceSource& each : workbench_.scene().sources()) {
        const SourceRole role = roleOf(each);
        source_->addItem(role == SourceRole::Simulation ? tr("simulated") : workbench_.otherWord(), static_cast<int>(role));
    }
    const int asked = source_->findData(static_cast<int>(role_.value_or(SourceRole::Other)));
    source_->setCurrentIndex(asked >= 0 ? asked : source_->count() - 1);
    setCapability(*source_, source_->count() > 1, source_->count() == 0 ? tr("No trace is shown.") : tr("It is the only trace that is shown."));
}

const TraceSource* StatisticsPanel::source() const
{
    const int at = source_->currentIndex(); // in the order of the scene's sources
    return at < 0 ? nullptr : &workbench_.scene().sources()[static_cast<std::size_t>(at)];
}

// A panel behind others in its place is no less visible to Qt; it is painted once it comes to the front.
void StatisticsPanel::paintEvent(QPaintEvent* event)
{
    QWidget::paintEvent(event);
    if (outdated_) QMetaObject::invokeMethod(this, &StatisticsPanel::refresh, Qt::QueuedConnection);
}

void StatisticsPanel::focusTable() { table_->setFocus(Qt::ShortcutFocusReason); }

// Of a run that goes on, what arrives while a look at it is under way, or right after one, is taken with the next.
void StatisticsPanel::refresh()
{
    outdated_ = true;
    if (visibleRegion().isEmpty() || later_.isActive()) return;
    const TraceSource* shown = source();
    if (shown && shown->growing && sinceStart_.isValid()) {
        if (job_.busy()) return; // take() asks again
        if (const qint64 wait = pauseMs_ - sinceStart_.elapsed(); wait > 0) {
            later_.start(static_cast<int>(wait));
            return;
        }
    }
    start();
}

// Of other sources nothing is known yet.
void StatisticsPanel::refreshAtOnce()
{
    later_.stop();
    sinceStart_.invalidate();
    refresh();
}

void StatisticsPanel::start()
{
    constexpr qint64 kShareOfCopies = 20; // the window spends no more than a twentieth of its time on them
    outdated_ = false;
    sinceStart_.start();
    const TraceSource* shown = source();
    if (!shown) {
        job_.cancel();
        take({});
        return;
    }
    const std::shared_ptr<const Trace> trace = shown->growing ? std::make_shared<const Trace>(*shown->trace) : shown->trace;
    pauseMs_ = std::max<qint64>(kLiveMs, kShareOfCopies * sinceStart_.elapsed());
    job_.start(
        [trace, original = std::weak_ptr<const Trace>(shown->trace), growing = shown->growing](JobControl& control) {
            Told told = tell(*trace, control.stopToken());
            told.trace = original;
            told.growing = growing;
            return told;
        },
        [this](Told told) { take(std::move(told)); });
}

StatisticsPanel::Told StatisticsPanel::tell(const Trace& trace, const std::stop_token& stop)
{
    Told told;
    told.steps = trace.steps().size();
    told.durations = traces::durationsOf(trace, kIntervals, stop);
    told.deviceTimes = traces::deviceTimes(trace, stop);
    struct Candidate {
        traces::SliceRef slice;
        std::size_t row;
        double times; // the median
    };
    std::vector<Candidate> all;
    for (std::size_t row = 0; row < told.durations.rows.size(); ++row) {
        const ActionStatistics& s = told.durations.rows[row].statistics;
        for (const traces::SliceRef& slice : s.outliers)
            all.push_back({slice, row, static_cast<double>(trace.slice(slice).duration()) / static_cast<double>(std::max<traces::TimeNs>(s.median, 1))});
    }
    told.farOutCount = all.size();
    const auto listed = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMostFarOut));
    std::partial_sort(all.begin(), listed, all.end(), [](const Candidate& a, const Candidate& b) { return a.times > b.times; });
    for (auto each = all.begin(); each != listed && !stop.stop_requested(); ++each) {
        const traces::Slice slice = trace.slice(each->slice);
        told.farOut.push_back({each->slice, each->row,
                               tr("%1, step %2: %3, %4 × the median")
                                   .arg(toQt(trace.sliceName(each->slice)))
                                   .arg(slice.step.value)
                                   .arg(toQt(formatDuration(slice.duration())))
                                   .arg(each->times, 0, 'f', 1)});
    }
    return told;
}

QString StatisticsPanel::scopeText() const
{
    const TraceSource* shown = source();
    if (!shown) return tr("No trace is shown.");
    if (told_.durations.rows.empty()) return told_.growing ? tr("No action has ended yet.") : job_.busy() ? tr("Being worked out…") : tr("The trace has no actions of a stage.");
    QString text = told_.steps == 0 ? tr("All actions") : counted(told_.steps, "step");
    if (told_.durations.firstLeftOut) text += tr(", the first left out");
    if (told_.growing) text += tr(", and the run goes on");
    if (told_.durations.handOff) text += tr("; hand-off between ranks %1 (median)").arg(toQt(formatDuration(*told_.durations.handOff)));
    return text + '.';
}

void StatisticsPanel::take(Told told)
{
    const int before = ordered_->mapToSource(table_->currentIndex()).row();
    const std::optional<ActionStatistics> chosen =
        before >= 0 ? std::optional(model_->rows()[static_cast<std::size_t>(before)].statistics) : std::nullopt;
    told_ = std::move(told);
    model_->setRows(told_.durations.rows);
    const int again = chosen ? model_->rowOf(chosen->stage, chosen->flow, chosen->kind) : -1;
    const int row = std::max(again, 0);
    if (model_->rowCount() > 0 && row != ordered_->mapToSource(table_->currentIndex()).row())
        table_->setCurrentIndex(ordered_->mapFromSource(model_->index(row, 0)));
    scope_->setText(scopeText());
    scope_->setAccessibleName(scope_->text());
    showRow();

    showFarOut();
    showDevices();
    emit settled();
    if (outdated_) refresh();
}

void StatisticsPanel::showDevices()
{
    devices_->setVisible(!told_.deviceTimes.empty());
    if (told_.deviceTimes.empty()) return;
    using traces::StreamGapCause;
    const auto share = [](traces::TimeNs part, traces::TimeNs whole) {
        return whole > 0 ? QString::number(100.0 * static_cast<double>(part) / static_cast<double>(whole), 'f', 1) : QString();
    };
    const bool nccl = std::any_of(told_.deviceTimes.begin(), told_.deviceTimes.end(), [](const traces::RankDeviceTime& each) { return each.time.nccl.all() > 0; });
    const auto isSeen = [](const traces::RankDeviceTime& each) { return each.time.notKnown > each.time.span / 2000; }; // else 0.0 %
    const bool unknown = std::any_of(told_.deviceTimes.begin(), told_.deviceTimes.end(), isSeen);
    std::vector<QStringList> rows{{tr("Rank"), tr("Kernels"), tr("Copies"), tr("Host"), tr("Launch"), tr("Event"), tr("Device")}};
    if (unknown) rows.front() << tr("Unknown");
    rows.front() << tr("Hidden");
    if (nccl) rows.front() << tr("NCCL") << tr("Waits") << tr("Moves");
    for (const auto& [rank, time] : told_.deviceTimes) {
        QStringList row{QString::number(rank.value), share(time.kernels, time.span), share(time.copies, time.span)};
        for (const StreamGapCause cause : traces::kStreamGapCauses) row << share(time.gap(cause), time.span);
        if (unknown) row << share(time.notKnown, time.span);
        row << share(time.hidden, time.copying);
        if (nccl) row << share(time.exchanges, time.span) << share(time.nccl.waiting, time.nccl.all()) << share(time.nccl.moving, time.nccl.all());
        rows.push_back(row);
    }
    deviceTable_->setTexts(rows);
    QStringList tips{tr("Whose blocks"),
                     tr("% of the time with a kernel of the rank at work"),
                     tr("% with a copy, and no kernel that hides it"),
                     tr("% in gaps in which the host had not launched the next kernel"),
                     tr("% in gaps in which the launch was on its way"),
                     tr("% in gaps in which the stream waited for an event"),
                     tr("% in gaps in which all was there and the device did not begin")};
    if (unknown) tips << tr("% of which no cause is recorded");
    tips << tr("% of the time of all copies of the rank in which a kernel of the same GPU was at work")
         << tr("% with a kernel of NCCL, and nothing else")
         << tr("% of the time of all kernels of NCCL in which they waited for the other ranks'")
         << tr("% of it in which all were there; of the rest it is not known");
    for (int column = 0; column < deviceTable_->columnCount(); ++column) deviceTable_->horizontalHeaderItem(column)->setToolTip(tips[column]);
    constexpr int kMostDeviceRows = 8; // seen at a time
    const int lines = std::min(deviceTable_->rowCount(), kMostDeviceRows);
    deviceTable_->setFixedHeight(deviceTable_->horizontalHeader()->sizeHint().height() + lines * deviceTable_->verticalHeader()->defaultSectionSize() +
                                 deviceTable_->horizontalScrollBar()->sizeHint().height());
}

void StatisticsPanel::showFarOut()
{
    farOutTitle_->setText(told_.farOutCount == 0             ? tr("Far out: none")
                          : told_.farOutCount > kMostFarOut ? tr("Far out: the %L1 farthest of %L2").arg(kMostFarOut).arg(told_.farOutCount)
                                                            : tr("Far out: %L1").arg(told_.farOutCount));
    farOut_->setVisible(told_.farOutCount > 0); // an empty list leaves its room to the table
    lower_->setMaximumHeight(told_.farOutCount > 0 ? QWIDGETSIZE_MAX : farOutTitle_->sizeHint().height());
    QStringList texts;
    for (const FarOut& each : told_.farOut) texts << each.text;
    if (texts == listed_) return; // whoever reads in it stays where they are
    listed_ = texts;
    const int row = farOut_->currentRow();
    farOut_->clear();
    farOut_->addItems(texts);
    if (row >= 0) farOut_->setCurrentRow(std::min(row, farOut_->count() - 1));
}

void StatisticsPanel::showRow()
{
    const int row = ordered_->mapToSource(table_->currentIndex()).row();
    if (row < 0 || row >= model_->rowCount()) {
        histogram_->clear(tr("No actions to count"));
        return;
    }
    const traces::DurationRow& actions = model_->rows()[static_cast<std::size_t>(row)];
    histogram_->show(actions.histogram, actions.statistics, model_->colourOf(row));
}

void StatisticsPanel::goTo(int listed)
{
    const std::shared_ptr<const Trace> trace = told_.trace.lock();
    if (listed < 0 || static_cast<std::size_t>(listed) >= told_.farOut.size() || !trace) return;
    const FarOut chosen = told_.farOut[static_cast<std::size_t>(listed)];
    table_->setCurrentIndex(ordered_->mapFromSource(model_->index(static_cast<int>(chosen.row), 0)));
    const TimelineScene& scene = workbench_.scene();
    TimelineItem item = itemOf(scene, trace, chosen.slice);
    if (item.none() && scene.arrangement() == Arrangement::Overlaid) { // an outline has no row of its own
        workbench_.setView(ViewKind::Stacked);
        item = itemOf(scene, trace, chosen.slice);
    }
    if (!item.none()) emit wanted(item);
}

} // namespace stagecraft::ui
