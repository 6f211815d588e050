// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/comparison_window.h"

#include "engine/explain/family_shape.h"
#include "ui/bridge/text.h"
#include "ui/explore/schedule_list.h"
#include "ui/explore/text_table.h"
#include "ui/explore/window_parts.h"
#include "ui/export/timeline_export.h"
#include "ui/timeline/timeline_widget.h"
#include "ui/window/workbench.h"

#include <QCheckBox>
#include <QFormLayout>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

ComparisonWindow::ComparisonWindow(Workbench& workbench, FileDialogs dialogs, QWidget* parent)
    : QDialog(parent, Qt::Window), workbench_(workbench), dialogs_(std::move(dialogs)), theme_(Theme::of(ThemeKind::Light)),
      schedules_(new ScheduleList), withTrace_(new QCheckBox(tr("With the &open trace"))), problem_(new InlineNote(InlineNote::Tone::Problem)),
      start_(new QPushButton(tr("&Compare"))), export_(new QPushButton(tr("&Export picture…"))), timeline_(new TimelineWidget(scene_)),
      table_(new TextTable(tr("Figures, and how they differ from the first"), {.namesAside = true, .leastWidth = 120}))
{
    setObjectName("comparison");
    setWindowTitle(tr("Comparison of schedules"));
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(besideControls(buildControls(), buildResult(), 230));
    resize(1120, 720);
    connect(start_, &QPushButton::clicked, this, &ComparisonWindow::compareChecked);
    connect(export_, &QPushButton::clicked, this, &ComparisonWindow::exportPicture);
    connect(&job_, &JobLane::busyChanged, this, &ComparisonWindow::refresh);
    connect(&workbench_, &Workbench::otherChanged, this, &ComparisonWindow::refresh);
    connect(&workbench_.document(), &PlanDocument::changed, this, [this] { schedules_->setPlan(workbench_.document().plan()); });
    schedules_->setPlan(workbench_.document().plan());
    std::vector<std::string> first{workbench_.document().plan().pipeline.schedule, "1f1b", "gpipe"};
    if (first[0] == first[1]) first.erase(first.begin()); // the plan's own and another one
    first.resize(2);
    schedules_->check(first);
    refresh();
}

ComparisonWindow::~ComparisonWindow()
{
    delete timeline_; // before the scene that it looks at
}

QWidget* ComparisonWindow::buildControls()
{
    schedules_->setObjectName("comparisonSchedules");
    withTrace_->setObjectName("comparisonWithTrace");
    start_->setObjectName("comparisonStart");
    export_->setObjectName("comparisonExport");
    problem_->setObjectName("comparisonProblem");
    QFormLayout* form = newControlForm();
    addField(*form, tr("Sche&dules"), *schedules_, tr("Those that are simulated with the plan; Space checks one. The first is what the others are set against."),
             LabelPlace::Above);
    describe(*withTrace_, tr("With the open trace"), tr("Sets the measured or opened trace beside them."));
    describe(*export_, tr("Export picture"), tr("Draws timelines and table into a PNG, SVG or PDF file."));
    start_->setDefault(true);
    export_->setAutoDefault(false);
    return controlColumn(form, {withTrace_, problem_, start_, export_});
}

QWidget* ComparisonWindow::buildResult()
{
    timeline_->setObjectName("comparisonTimeline");
    timeline_->setEmptyText(tr("Nothing to compare yet"), tr("Check schedules on the left and press Compare, or select some in the gallery."));
    table_->setObjectName("comparisonTable");
    return aboveTable(timeline_, table_);
}

void ComparisonWindow::setTheme(const Theme& theme)
{
    theme_ = theme;
    timeline_->setTheme(theme);
}

void ComparisonWindow::compareChecked()
{
    std::vector<engine::Plan> plans;
    for (const std::string& name : schedules_->checked()) plans.push_back(engine::withSchedule(workbench_.document().plan(), name));
    compare(std::move(plans));
}

void ComparisonWindow::compare(std::vector<engine::Plan> plans)
{
    const bool trace = withTrace_->isChecked() && withTrace_->isEnabled();
    problem_->say(plans.size() + (trace ? 1 : 0) < 2 ? tr("Check two or more.") : QString());
    if (!problem_->text().isEmpty()) return;
    std::vector<std::string> names;
    for (const engine::Plan& plan : plans) names.push_back(plan.pipeline.schedule);
    schedules_->check(names);
    job_.start(
        [plans = std::move(plans)](JobControl& control) {
            Result result;
            for (std::size_t i = 0; i < plans.size() && !control.cancelled(); ++i) {
                engine::SurveyEntry entry = engine::survey(plans[i], control.stopToken());
                if (entry.trace) result.entries.push_back(std::move(entry));
                else result.refusals.push_back(engine::Error{entry.refusal});
                control.report(static_cast<double>(i + 1) / static_cast<double>(plans.size()));
            }
            return result;
        },
        [this](Result result) { take(std::move(result)); });
}

void ComparisonWindow::take(Result result)
{
    QStringList reasons;
    for (const engine::Error& refusal : result.refusals) reasons << toQt(refusal.message);
    problem_->say(reasons.join('\n'));
    sources_.clear();
    steps_.clear();
    for (engine::SurveyEntry& entry : result.entries) {
        QString title = entry.family ? toQt(entry.family->title) : tr("the plan's own order");
        if (entry.plan.pipeline.chunks > 1) title += tr(", v = %1").arg(entry.plan.pipeline.chunks);
        sources_.push_back({.trace = entry.trace, .label = title});
        steps_.push_back({.title = title,
                          .figures = entry.figures,
                          .microbatches = entry.plan.pipeline.microbatches,
                          .handOffs = entry.handOffs,
                          .weightCopies = entry.weightCopies});
    }
    if (withTrace_->isChecked() && withTrace_->isEnabled()) addOpenTrace();
    scene_.setSources(sources_, Arrangement::Stacked);
    timeline_->fitAll();
    table_->setTexts(comparisonTable(steps_));
    refresh();
    emit compared();
}

// Its middle step stands for it.
void ComparisonWindow::addOpenTrace()
{
    const std::shared_ptr<const traces::Trace>& other = workbench_.other();
    const std::vector<traces::StepFigures> all = traces::allStepFigures(*other);
    if (all.empty()) return;
    const QString title = tr("%1 trace").arg(workbench_.otherWord());
    sources_.push_back({.trace = other, .label = title, .growing = false, .role = SourceRole::Other});
    steps_.push_back({.title = title, .figures = all[all.size() / 2], .microbatches = other->info.microbatches});
}

void ComparisonWindow::refresh()
{
    const bool trace = workbench_.other() != nullptr && !workbench_.run().active();
    setCapability(*withTrace_, trace, workbench_.run().active() ? tr("A run is going on.") : tr("No trace is open, and no run was made."));
    setCapability(*start_, !job_.busy(), tr("They are being simulated."));
    setCapability(*export_, !sources_.empty() && !job_.busy(), tr("Compare first."));
}

void ComparisonWindow::exportPicture()
{
    const QString file =
        dialogs_.saveFile(tr("Export the comparison"), tr("PNG image (*.png);;SVG drawing (*.svg);;PDF document (*.pdf)"), QStringLiteral("comparison.png"));
    if (file.isEmpty()) return;
    ExportOptions options;
    options.theme = theme_;
    options.title = windowTitle();
    options.table = comparisonTable(steps_);
    const traces::Expected<void> drawn = exportTimeline(sources_, options, file);
    if (!drawn.ok()) dialogs_.tellProblem(tr("Not exported"), toQt(drawn.error().message));
}

} // namespace stagecraft::ui
