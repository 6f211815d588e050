// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/sweep_window.h"

#include "engine/explain/sweep_figures.h"
#include "engine/explain/sweep_files.h"
#include "traces/format/output_file.h"
#include "ui/bridge/text.h"
#include "ui/explore/schedule_list.h"
#include "ui/explore/window_parts.h"
#include "ui/export/plot_export.h"
#include "ui/lab/plan_document.h"
#include "ui/plots/sweep_plot.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

using engine::Scaling;
using engine::Sweep;
using engine::SweepQuantity;
using engine::SweepRequest;

namespace {

constexpr int kControlsWidth = 290;
constexpr int kAllFigures = -1;

// What the field offers at first.
const char* firstValues(SweepQuantity quantity)
{
    switch (quantity) {
    case SweepQuantity::Microbatches: return "1..64*2";
    case SweepQuantity::Ranks: return "1..16";
    case SweepQuantity::Chunks: return "1..8";
    case SweepQuantity::Slices: return "1..8";
    case SweepQuantity::Group: return "4..8";
    case SweepQuantity::MicrobatchSize: return "1..64*2";
    case SweepQuantity::Forward:
    case SweepQuantity::Backward: return "0.5ms..4ms+0.5ms";
    case SweepQuantity::Latency:
    case SweepQuantity::NodeLatency: return "0us..500us+50us";
    case SweepQuantity::RanksPerNode: return "1..8*2";
    case SweepQuantity::Replicas: return "1..64*2";
    case SweepQuantity::Offload: return "0%..100%+10%";
    case SweepQuantity::Bandwidth:
    case SweepQuantity::NodeBandwidth: return "1GB/s..64GB/s*2";
    case SweepQuantity::BoundaryBytes: return "1MiB..64MiB*2";
    case SweepQuantity::ActivationBytes:
    case SweepQuantity::MemoryLimit: return "1GiB..16GiB*2";
    case SweepQuantity::Jitter: return "0%..30%";
    }
    return "";
}

} // namespace

SweepWindow::SweepWindow(const PlanDocument& document, FileDialogs dialogs, QWidget* parent)
    : QDialog(parent, Qt::Window), document_(document), dialogs_(std::move(dialogs)), theme_(Theme::of(ThemeKind::Light)),
      quantity_(new QComboBox), values_(new QLineEdit), schedules_(new ScheduleList), batch_(new QLineEdit), fixed_(new QLineEdit),
      scaling_(new QComboBox), start_(new QPushButton(tr("&Sweep"))), cancel_(new QPushButton(tr("&Cancel"))), progress_(new QProgressBar),
      problem_(new InlineNote(InlineNote::Tone::Problem)), figure_(new QComboBox), plot_(new SweepPlot), told_(new QLabel), notes_(new QLabel),
      picture_(new QPushButton(tr("Export &picture…"))), table_(new QPushButton(tr("Export &table…")))
{
    setObjectName("sweepWindow");
    setWindowTitle(tr("Curves"));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(besideControls(buildControls(), buildCurves(), kControlsWidth));
    resize(1080, 640);

    connect(quantity_, &QComboBox::currentIndexChanged, this, &SweepWindow::showQuantity);
    connect(values_, &QLineEdit::textEdited, this, [this](const QString& text) { typed_[quantity()] = text; });
    connect(figure_, &QComboBox::currentIndexChanged, this, &SweepWindow::showFigures);
    connect(start_, &QPushButton::clicked, this, &SweepWindow::sweep);
    connect(cancel_, &QPushButton::clicked, this, &SweepWindow::cancel);
    connect(picture_, &QPushButton::clicked, this, &SweepWindow::exportPicture);
    connect(table_, &QPushButton::clicked, this, &SweepWindow::exportTable);
    connect(&job_, &JobLane::progressed, this, [this](double fraction) { progress_->setValue(static_cast<int>(fraction * 1000)); });
    connect(&job_, &JobLane::busyChanged, this, &SweepWindow::refreshButtons);
    connect(plot_, &SweepPlot::pointTold, this,
            [this](const QString& text) { told_->setText(text.isEmpty() ? tr("Point at a curve, or use the arrow keys in the plot.") : text); });
    connect(&document_, &PlanDocument::changed, this, &SweepWindow::showPlan);
    showQuantity();
    showPlan();
    refreshButtons();
    plot_->setSweep({});
}

QWidget* SweepWindow::buildControls()
{
    quantity_->setObjectName("sweepQuantity");
    values_->setObjectName("sweepValues");
    schedules_->setObjectName("sweepSchedules");
    batch_->setObjectName("sweepBatch");
    fixed_->setObjectName("sweepFixedCost");
    scaling_->setObjectName("sweepScaling");
    start_->setObjectName("sweepStart");
    cancel_->setObjectName("sweepCancel");
    progress_->setObjectName("sweepProgress");
    problem_->setObjectName("sweepProblem");
    for (const engine::SweepQuantityInfo& info : engine::sweepQuantities())
        quantity_->addItem(toQt(info.title), static_cast<int>(info.quantity));
    scaling_->addItem(tr("as the plan has it"), static_cast<int>(Scaling::None));
    scaling_->addItem(tr("strong: the model stays"), static_cast<int>(Scaling::Strong));
    scaling_->addItem(tr("weak: it grows with the ranks"), static_cast<int>(Scaling::Weak));
    schedules_->check({"gpipe", "1f1b", "zb-h1"});
    schedules_->setMinimumHeight(120);
    progress_->setRange(0, 1000);
    progress_->setTextVisible(false);
    progress_->setAccessibleName(tr("Progress of the sweep"));
    start_->setDefault(true);
    batch_->setPlaceholderText(tr("the plan's own"));
    fixed_->setPlaceholderText(tr("none"));

    QFormLayout* form = newControlForm();
    addField(*form, tr("&Vary"), *quantity_, tr("The quantity of the plan that takes one value after the other; all others stay."), LabelPlace::Above);
    addField(*form, tr("V&alues"), *values_, tr("A list (4,8,16), a range (1..64, 0us..500us+50us), or one that grows by a factor (1..1024*2)."),
             LabelPlace::Above);
    addField(*form, tr("Sche&dules"), *schedules_, tr("Those that are simulated and plotted; Space checks one."), LabelPlace::Above);
    more_ = newControlForm();
    addField(*more_, tr("&Batch"), *batch_, tr("Samples of a step (B); a micro-batch of b makes B/b of them."));
    addField(*more_, tr("Fi&xed cost"), *fixed_, tr("What every action costs beside its time, such as 50us: with it there is a best micro-batch size."));
    addField(*more_, tr("Scalin&g"), *scaling_, tr("How the work changes with the ranks; adds speed-up and efficiency, with Amdahl's or Gustafson's line."));

    auto* buttons = new QHBoxLayout;
    buttons->addWidget(start_);
    buttons->addWidget(cancel_);
    auto* box = new QWidget;
    box->setMinimumWidth(kControlsWidth - 40);
    auto* layout = new QVBoxLayout(box);
    layout->setContentsMargins(0, 0, 8, 0);
    layout->addLayout(form, 1);
    layout->addLayout(more_);
    layout->addWidget(problem_);
    layout->addLayout(buttons);
    layout->addWidget(progress_);
    return box;
}

QWidget* SweepWindow::buildCurves()
{
    figure_->setObjectName("sweepFigure");
    plot_->setObjectName("sweepPlot");
    told_->setObjectName("sweepTold");
    notes_->setObjectName("sweepNotes");
    picture_->setObjectName("sweepPicture");
    table_->setObjectName("sweepTable");
    figure_->addItem(tr("Bubble, step, peak and throughput"), kAllFigures);
    for (const engine::SweepFigureInfo& info : engine::sweepFigures())
        figure_->addItem(QStringLiteral("%1 = %2").arg(toQt(info.title), toQt(info.meaning)), static_cast<int>(info.figure));
    describe(*figure_, tr("Figure"), tr("What the curves show; the three bubbles are different ratios of the same step."));
    describe(*picture_, tr("Export picture"), tr("Draws the curves into a PNG, SVG or PDF file."));
    describe(*table_, tr("Export table"), tr("Writes every point, with the formulas' values, into a CSV file."));
    told_->setWordWrap(true);
    told_->setTextFormat(Qt::PlainText);
    told_->setMinimumHeight(told_->fontMetrics().lineSpacing() * 2);
    told_->setAlignment(Qt::AlignTop);
    notes_->setWordWrap(true);
    notes_->setTextFormat(Qt::PlainText);
    notes_->setProperty("tone", "hint");
    makeSelectable(*notes_);

    auto* head = new QHBoxLayout;
    head->addWidget(figure_, 1);
    head->addWidget(picture_);
    head->addWidget(table_);
    auto* box = new QWidget;
    auto* layout = new QVBoxLayout(box);
    layout->setContentsMargins(8, 0, 0, 0);
    layout->addLayout(head);
    layout->addWidget(plot_, 1);
    layout->addWidget(told_);
    layout->addWidget(notes_);
    return box;
}

SweepQuantity SweepWindow::quantity() const { return static_cast<SweepQuantity>(quantity_->currentData().toInt()); }

void SweepWindow::setTheme(const Theme& theme)
{
    theme_ = theme;
    plot_->setTheme(theme);
}

void SweepWindow::showQuantity()
{
    const auto typed = typed_.find(quantity());
    values_->setText(typed == typed_.end() ? QString::fromLatin1(firstValues(quantity())) : typed->second);
    more_->setRowVisible(batch_, quantity() == SweepQuantity::MicrobatchSize);
    more_->setRowVisible(scaling_, quantity() == SweepQuantity::Ranks);
    problem_->say({});
}

void SweepWindow::showFigures()
{
    const int chosen = figure_->currentData().toInt();
    plot_->setFigures(chosen == kAllFigures ? mainFigures(plot_->sweep()) : std::vector{static_cast<engine::SweepFigure>(chosen)});
}

// Old curves are marked as such.
void SweepWindow::showPlan()
{
    const engine::Plan& plan = document_.plan();
    schedules_->setPlan(plan);
    setWindowTitle(sweptPlan_ && *sweptPlan_ != plan ? tr("Curves (of the plan before; sweep again)") : tr("Curves"));
}

engine::Expected<SweepRequest> SweepWindow::request() const
{
    SweepRequest made{.plan = document_.plan(), .schedules = schedules_->checked(), .axis = {}};
    if (made.schedules.empty()) return engine::Error{fromQt(tr("Check at least one schedule."))};
    engine::Expected<engine::SweepAxis> axis = engine::parseSweepValues(quantity(), fromQt(values_->text()));
    if (!axis.ok()) return axis.error();
    made.axis = std::move(axis).value();
    if (made.axis.quantity == SweepQuantity::MicrobatchSize && !batch_->text().isEmpty()) {
        bool whole = false;
        made.batch = batch_->text().toLongLong(&whole);
        if (!whole || made.batch < 1) return engine::Error{fromQt(tr("The batch is a whole number of samples, 1 or more."))};
    }
    if (!fixed_->text().trimmed().isEmpty()) {
        const engine::Expected<engine::TimeNs> fixed = traces::parseDuration(fromQt(fixed_->text().trimmed()));
        if (!fixed.ok()) return fixed.error().in(fromQt(tr("fixed cost")));
        made.fixedPerAction = fixed.value();
    }
    if (made.axis.quantity == SweepQuantity::Ranks) made.scaling = static_cast<Scaling>(scaling_->currentData().toInt());
    return made;
}

void SweepWindow::sweep()
{
    engine::Expected<SweepRequest> made = request();
    problem_->say(made.ok() ? QString() : toQt(made.error().message));
    if (!made.ok()) return;
    sweptPlan_ = made.value().plan;
    progress_->setValue(0);
    job_.start(
        [request = std::move(made).value()](JobControl& control) {
            return engine::runSweep(
                request,
                [&](const engine::SweepProgress& progress) {
                    control.report(progress.total > 0 ? static_cast<double>(progress.done) / static_cast<double>(progress.total) : 1);
                },
                control.stopToken());
        },
        [this](engine::Expected<Sweep> result) { showResult(std::move(result)); });
}

void SweepWindow::cancel()
{
    if (!job_.busy()) return;
    job_.cancel();
    sweptPlan_.reset();
    problem_->say(tr("Cancelled; the curves are those from before."));
}

void SweepWindow::showResult(engine::Expected<Sweep> result)
{
    problem_->say(result.ok() ? QString() : toQt(result.error().message));
    if (!result.ok()) return;
    QStringList notes;
    for (const std::string& note : result.value().notes) notes << toQt(note);
    for (const engine::SweepSeries& series : result.value().series) {
        if (series.bestSize)
            notes << tr("%1: b* = %2 = %3.").arg(toQt(series.title), toQt(series.bestSize->text)).arg(series.bestSize->value, 0, 'g', 4);
        if (series.leftOut.empty()) continue;
        QStringList values;
        for (const engine::LeftOut& left : series.leftOut) values << toQt(engine::sweepValueText(quantity(), left.value));
        constexpr qsizetype kMostNamed = 8;
        if (values.size() > kMostNamed) values = values.mid(0, kMostNamed) << tr("… (%1 in all)").arg(values.size());
        notes << tr("%1 leaves out %2: %3").arg(toQt(series.title), values.join(QStringLiteral(", ")), toQt(series.leftOut.front().reason));
    }
    plot_->setSweep(std::move(result).value());
    showFigures();
    notes_->setText(notes.join('\n'));
    notes_->setVisible(!notes.isEmpty());
    showPlan();
    refreshButtons();
    emit swept();
}

void SweepWindow::refreshButtons()
{
    setCapability(*cancel_, job_.busy(), tr("No sweep is at work."));
    progress_->setVisible(job_.busy());
    const bool any = !plot_->sweep().series.empty();
    setCapability(*picture_, any, tr("Sweep first."));
    setCapability(*table_, any, tr("Sweep first."));
}

void SweepWindow::exportPicture()
{
    const QString file = dialogs_.saveFile(tr("Export the curves"), tr("PNG image (*.png);;SVG drawing (*.svg);;PDF document (*.pdf)"), QStringLiteral("curves.png"));
    if (file.isEmpty()) return;
    const int chosen = figure_->currentData().toInt();
    SweepPicture picture{.figures = {}, .theme = theme_};
    if (chosen != kAllFigures) picture.figures = {static_cast<engine::SweepFigure>(chosen)};
    const traces::Expected<void> drawn = exportSweep(plot_->sweep(), picture, file);
    if (!drawn.ok()) dialogs_.tellProblem(tr("Not exported"), toQt(drawn.error().message));
}

void SweepWindow::exportTable()
{
    const QString file = dialogs_.saveFile(tr("Export the points"), tr("CSV table (*.csv)"), QStringLiteral("curves.csv"));
    if (file.isEmpty()) return;
    const traces::Expected<void> written = traces::writeWholeFile(fromQt(file), engine::sweepCsv(plot_->sweep()));
    if (!written.ok()) dialogs_.tellProblem(tr("Not exported"), toQt(written.error().message));
}

} // namespace stagecraft::ui
