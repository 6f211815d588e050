// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/gallery_dialog.h"

#include "traces/base/units.h"
#include "ui/bridge/text.h"
#include "ui/explore/gallery_card.h"
#include "ui/lab/form.h"
#include "ui/lab/plan_document.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {
namespace {

constexpr int kDetailsWidth = 320;

// By title, name, idea and the names elsewhere; those that refuse the plan are left out where that is asked for.
class GalleryFilter : public QSortFilterProxyModel {
public:
    GalleryFilter(const GalleryModel& model, QObject* parent) : QSortFilterProxyModel(parent), model_(model) {}

    void set(const QString& text, bool possibleOnly)
    {
        words_ = text.split(' ', Qt::SkipEmptyParts);
        possibleOnly_ = possibleOnly;
        invalidateFilter();
    }

protected:
    bool filterAcceptsRow(int row, const QModelIndex&) const override
    {
        const GalleryCard& card = model_.card(row);
        if (possibleOnly_ && card.known && !card.entry.refusal.empty()) return false;
        QString text = toQt(card.family->title + ' ' + card.family->name + ' ' + card.family->idea + ' ' + card.family->source);
        for (const engine::ForeignName& name : card.family->elsewhere) text += ' ' + toQt(name.where + ' ' + name.name);
        return std::ranges::all_of(words_, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
    }

private:
    const GalleryModel& model_;
    QStringList words_;
    bool possibleOnly_ = false;
};

QString row(const QString& what, const QString& value, const QString& formula = {})
{
    return QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td align='right'><b>%2</b></td></tr>%3")
        .arg(what.toHtmlEscaped(), value.toHtmlEscaped(),
             formula.isEmpty() ? QString() : QStringLiteral("<tr><td colspan='2' align='right'><small>= %1</small></td></tr>").arg(formula.toHtmlEscaped()));
}

QString formulaOf(const std::optional<engine::ClosedForm>& form) { return form ? toQt(form->text) : QString(); }

} // namespace

GalleryDialog::GalleryDialog(PlanDocument& document, QWidget* parent)
    : QDialog(parent, Qt::Window), document_(document), filter_(new GalleryFilter(model_, this)), delegate_(new GalleryCardDelegate(this)),
      search_(new QLineEdit), possible_(new QCheckBox(tr("&Possible ones only"))), view_(new QListView), details_(new QLabel), legend_(new QLabel), progress_(new QLabel),
      use_(new QPushButton(tr("&Use this schedule"))), compare_(new QPushButton(tr("&Compare selected")))
{
    setObjectName("gallery");
    setWindowTitle(tr("Gallery of schedules"));
    search_->setObjectName("galleryFilter");
    view_->setObjectName("galleryCards");
    details_->setObjectName("galleryDetails");
    use_->setObjectName("galleryUse");
    compare_->setObjectName("galleryCompare");
    possible_->setObjectName("galleryPossible");
    search_->setPlaceholderText(tr("Filter: bubble, Megatron, DualPipe, …"));
    search_->setClearButtonEnabled(true);
    describe(*search_, tr("Filter"), tr("Shows the schedules that have these words in their name, idea, source, or name elsewhere."));
    describe(*possible_, tr("Possible ones only"), tr("Leaves out the schedules that cannot take the plan's ranks and micro-batches."));
    describe(*use_, tr("Use this schedule"), tr("Makes it the plan's schedule; Undo takes that back."));
    describe(*compare_, tr("Compare selected"), tr("Shows the selected schedules below each other on one time axis; Ctrl and Shift select several."));
    filter_->setSourceModel(&model_);
    view_->setModel(filter_);
    view_->setItemDelegate(delegate_);
    view_->setViewMode(QListView::IconMode);
    view_->setMovement(QListView::Static);
    view_->setResizeMode(QListView::Adjust);
    view_->setUniformItemSizes(true);
    view_->setSelectionMode(QAbstractItemView::ExtendedSelection);
    view_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    view_->setAccessibleName(tr("Schedules"));
    view_->setFrameShape(QFrame::NoFrame);
    details_->setWordWrap(true);
    details_->setTextFormat(Qt::RichText);
    details_->setAlignment(Qt::AlignTop);
    details_->setContentsMargins(10, 4, 10, 4);
    makeSelectable(*details_);

    auto* head = new QHBoxLayout;
    head->addWidget(search_, 1);
    head->addWidget(possible_);
    auto* left = new QWidget;
    auto* leftLayout = new QVBoxLayout(left);
    leftLayout->setContentsMargins(0, 0, 0, 0);
    leftLayout->addLayout(head);
    leftLayout->addWidget(view_, 1);
    auto* scroll = new QScrollArea;
    scroll->setWidget(details_);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setMinimumWidth(kDetailsWidth - 60);
    auto* columns = new QSplitter(Qt::Horizontal);
    columns->addWidget(left);
    columns->addWidget(scroll);
    columns->setStretchFactor(0, 1);
    columns->setChildrenCollapsible(false);
    columns->setSizes({700, kDetailsWidth});
    auto* close = new QPushButton(tr("Close"));
    close->setAutoDefault(false);
    compare_->setAutoDefault(false);
    use_->setDefault(true);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(legend_);
    buttons->addSpacing(16);
    buttons->addWidget(progress_);
    buttons->addStretch(1);
    buttons->addWidget(compare_);
    buttons->addWidget(use_);
    buttons->addWidget(close);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(columns, 1);
    layout->addLayout(buttons);
    resize(1080, 680);

    const auto filter = [this] { static_cast<GalleryFilter*>(filter_)->set(search_->text(), possible_->isChecked()); };
    connect(search_, &QLineEdit::textChanged, this, filter);
    connect(possible_, &QCheckBox::toggled, this, filter);
    connect(close, &QPushButton::clicked, this, &QDialog::close);
    connect(use_, &QPushButton::clicked, this, &GalleryDialog::useCurrent);
    connect(compare_, &QPushButton::clicked, this, &GalleryDialog::compareSelected);
    connect(view_, &QListView::doubleClicked, this, &GalleryDialog::useCurrent);
    connect(view_->selectionModel(), &QItemSelectionModel::currentChanged, this, &GalleryDialog::showDetails);
    connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &GalleryDialog::showDetails);
    connect(&model_, &GalleryModel::dataChanged, this, [this](const QModelIndex& first, const QModelIndex& last) {
        for (int changed = first.row(); changed <= last.row(); ++changed)
            if (model_.card(changed).current) delegate_->forget(changed);
        showDetails();
    });
    connect(&model_, &GalleryModel::finished, this, [this] { progress_->clear(); });
    connect(&document_, &PlanDocument::changed, this, [this] {
        if (isVisible()) refresh();
    });
    setTheme(Theme::of(ThemeKind::Light));
    showDetails();
}

void GalleryDialog::setTheme(const Theme& theme)
{
    delegate_->setTheme(theme);
    QStringList colours;
    for (const traces::PaintClass paint : {traces::PaintClass::Forward, traces::PaintClass::Backward, traces::PaintClass::InputGrad,
                                           traces::PaintClass::WeightGrad, traces::PaintClass::Overlap})
        colours << QStringLiteral("<span style='color:%1'>■</span> %2").arg(theme.block(paint, 0).name(), tr(paintClassName(paint)));
    legend_->setText(colours.join(QStringLiteral("&nbsp;&nbsp; ")));
    view_->viewport()->update();
}

void GalleryDialog::refresh()
{
    const engine::PipelineSpec& pipeline = document_.plan().pipeline;
    progress_->setText(tr("simulating with %1 and %2 …").arg(counted(pipeline.ranks, "rank"), counted(pipeline.microbatches, "micro-batch")));
    model_.setPlan(document_.plan());
    if (!model_.busy()) progress_->clear();
}

void GalleryDialog::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    refresh();
    if (view_->currentIndex().isValid()) return;
    const int own = std::max(0, model_.rowOf(document_.plan().pipeline.schedule));
    view_->setCurrentIndex(filter_->mapFromSource(model_.index(own)));
    view_->setFocus();
}

// Nobody looks: the rest can wait until somebody does.
void GalleryDialog::hideEvent(QHideEvent* event)
{
    QDialog::hideEvent(event);
    model_.stop();
}

int GalleryDialog::currentRow() const
{
    const QModelIndex current = view_->currentIndex();
    return current.isValid() ? filter_->mapToSource(current).row() : -1;
}

std::vector<int> GalleryDialog::selectedRows() const
{
    std::vector<int> rows;
    for (const QModelIndex& index : view_->selectionModel()->selectedIndexes()) rows.push_back(filter_->mapToSource(index).row());
    std::ranges::sort(rows);
    return rows;
}

void GalleryDialog::showDetails()
{
    const int shown = currentRow();
    std::vector<int> selected = selectedRows();
    std::erase_if(selected, [this](int r) { return !model_.card(r).entry.refusal.empty() || !model_.card(r).known; });
    setCapability(*compare_, selected.size() >= 2, tr("Select two or more schedules that the plan can take."));
    if (shown < 0) {
        details_->clear();
        setCapability(*use_, false, tr("Choose a schedule."));
        return;
    }
    const GalleryCard& card = model_.card(shown);
    const engine::ScheduleFamily& family = *card.family;
    const engine::SurveyEntry& entry = card.entry;
    QString text = QStringLiteral("<h3>%1</h3><p>%2</p>").arg(toQt(family.title).toHtmlEscaped(), toQt(family.idea).toHtmlEscaped());
    const bool refused = card.known && !entry.refusal.empty();
    if (refused) {
        text += QStringLiteral("<p><b>%1</b> %2</p>").arg(tr("Not with this plan:"), toQt(entry.refusal).toHtmlEscaped());
        if (entry.nearest) text += QStringLiteral("<p>%1</p>").arg(tr("The nearest that it takes: %1.").arg(toQt(engine::changeText(*entry.nearest))));
    } else if (card.known) {
        const traces::StepFigures& figures = entry.figures;
        const auto percent = [](double value) { return toQt(traces::formatPercent(value)); };
        text += QStringLiteral("<table width='100%'>");
        text += row(tr("step"), toQt(traces::formatDuration(figures.makespan)), formulaOf(entry.forms.makespan));
        text += row(tr("bubble of the makespan"), percent(figures.bubbleMakespan), formulaOf(entry.forms.bubbleMakespan));
        text += row(tr("bubble of the span"), percent(figures.bubbleSpan), formulaOf(entry.forms.bubbleSpan));
        text += row(tr("bubble over ideal"), percent(figures.bubbleOverIdeal), formulaOf(entry.forms.bubbleOverIdeal));
        text += row(tr("peak activations"), QString::number(entry.peakActivations, 'g', 4), formulaOf(entry.forms.peakActivations));
        if (entry.peakMemory > 0) text += row(tr("peak memory"), toQt(traces::formatSize(entry.peakMemory)));
        text += row(tr("hand-offs between ranks"), QString::number(entry.handOffs));
        if (entry.sentBytes > 0) text += row(tr("bytes of them"), toQt(traces::formatSize(entry.sentBytes)));
        if (entry.copies > 0) text += row(tr("activations kept elsewhere"), QString::number(entry.copies));
        text += row(tr("copies of the weights"), QString::number(entry.weightCopies));
        text += QStringLiteral("</table>");
    }
    text += QStringLiteral("<p><b>%1</b> %2</p>").arg(tr("Takes:"), toQt(family.conditions).toHtmlEscaped());
    QStringList names{tr("here: %1").arg(toQt(family.name))};
    for (const engine::ForeignName& name : family.elsewhere) names << QStringLiteral("%1: %2").arg(toQt(name.where), toQt(name.name));
    text += QStringLiteral("<p><b>%1</b><br>%2</p>").arg(tr("Called"), names.join(QStringLiteral("\n")).toHtmlEscaped().replace('\n', QStringLiteral("<br>")));
    text += QStringLiteral("<p><b>%1</b> %2</p>").arg(tr("Source:"), toQt(family.source).toHtmlEscaped());
    details_->setText(text);
    use_->setText(refused && entry.nearest ? tr("&Use it with %1").arg(toQt(engine::changeText(*entry.nearest))) : tr("&Use this schedule"));
    setCapability(*use_, card.known && (!refused || entry.nearest), card.known ? tr("No shape nearby is one that it takes.") : tr("It is being simulated."));
}

void GalleryDialog::useCurrent()
{
    const int chosen = currentRow();
    if (chosen < 0 || !use_->isEnabled()) return;
    const GalleryCard& card = model_.card(chosen);
    // of the plan as it is now: the card may be of the one before
    engine::Plan plan = engine::withSchedule(document_.plan(), card.family->name);
    if (!card.entry.refusal.empty() && card.entry.nearest) plan = engine::withChange(std::move(plan), *card.entry.nearest);
    document_.edit(std::move(plan), tr("schedule %1").arg(toQt(card.family->title)));
}

void GalleryDialog::compareSelected()
{
    std::vector<engine::Plan> plans;
    for (const int chosen : selectedRows())
        if (const GalleryCard& card = model_.card(chosen); card.known && card.entry.refusal.empty())
            plans.push_back(engine::withSchedule(document_.plan(), card.family->name));
    if (plans.size() >= 2) emit compareWanted(plans);
}

} // namespace stagecraft::ui
