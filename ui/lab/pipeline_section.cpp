// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/pipeline_section.h"

#include "engine/explain/family_shape.h"
#include "ui/bridge/text.h"
#include "ui/lab/family_options.h"
#include "ui/lab/form.h"
#include "ui/lab/schedule_text.h"

#include <QComboBox>
#include <QFormLayout>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::LegalChange;

PipelineSection::PipelineSection(QWidget* parent)
    : LabSection(parent), schedule_(newCombo()), fromFile_(new QPushButton(tr("From file…"))), idea_(new QLabel),
      text_(new ScheduleText), textProblem_(new InlineNote(InlineNote::Tone::Problem)), ranks_(newSpin(1, kMostRanks)),
      chunks_(newSpin(1, kMostChunks)), microbatches_(newSpin(1, kMostMicrobatches)),
      slices_(newSpin(1, engine::kMaxSlices)),
      problem_(new InlineNote(InlineNote::Tone::Problem)), fix_(new QPushButton)
{
    schedule_->setObjectName("schedule");
    fromFile_->setObjectName("scheduleFromFile");
    text_->setObjectName("scheduleText");
    textProblem_->setObjectName("scheduleTextProblem");
    ranks_->setObjectName("ranks");
    chunks_->setObjectName("chunks");
    microbatches_->setObjectName("microbatches");
    slices_->setObjectName("slices");
    problem_->setObjectName("pipelineProblem");
    fix_->setObjectName("pipelineFix");
    idea_->setWordWrap(true);
    idea_->setProperty("tone", "hint");
    fix_->hide();

    QFormLayout* form = newForm();
    addField(*form, tr("Sche&dule"), *schedule_, tr("The order in which each rank works through its micro-batches."));
    form->addRow(QString(), fromFile_);
    describe(*fromFile_, tr("Schedule from a file"),
             tr("Reads a schedule that is written out: a line per rank, actions such as 0F0 separated by commas."));
    form->addRow(idea_);
    form->addRow(text_);
    describe(*text_, tr("Text of the schedule"),
             tr("The order of every rank, a line each: stage, F, B, I or W, micro-batch; what is typed here becomes the schedule."));
    form->addRow(textProblem_);
    addField(*form, tr("R&anks"), *ranks_, tr("How many devices the pipeline is spread over (p)."));
    addField(*form, tr("Ch&unks per rank"), *chunks_,
             tr("How many stages each rank holds (v); more of them make bubbles smaller and transfers more frequent."));
    addField(*form, tr("Micro-&batches"), *microbatches_,
             tr("Into how many parts each step's batch is cut (m); more of them make bubbles smaller."));
    addField(*form, tr("Slices"), *slices_,
             tr("Into how many pieces each sequence is cut (k), which go through the stages one after the other."));
    options_ = new FamilyOptions(*form, this);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);
    layout->addWidget(fix_, 0, Qt::AlignLeft);

    offerSchedules();
    connect(schedule_, &QComboBox::currentIndexChanged, this, [this] {
        const std::string name = fromQt(schedule_->currentData().toString());
        choose(tr("schedule"), [&](engine::Plan& plan) {
            plan.pipeline.schedule = name;
            if (name != "custom") plan.pipeline.customSchedule.clear();
        });
    });
    connect(ranks_, &QSpinBox::valueChanged, this, [this](int value) {
        change(tr("ranks"), "ranks", [&](engine::Plan& plan) { plan = withShape(plan, value, plan.pipeline.chunks); });
    });
    connect(chunks_, &QSpinBox::valueChanged, this, [this](int value) {
        change(tr("chunks"), "chunks", [&](engine::Plan& plan) { plan = withShape(plan, plan.pipeline.ranks, value); });
    });
    connect(microbatches_, &QSpinBox::valueChanged, this, [this](int value) {
        change(tr("micro-batches"), "microbatches", [&](engine::Plan& plan) { plan.pipeline.microbatches = value; });
    });
    connect(slices_, &QSpinBox::valueChanged, this, [this](int value) {
        change(tr("slices"), "slices", [&](engine::Plan& plan) { plan.pipeline.slices = value; });
    });
    connect(options_, &LabSection::edited, this, &LabSection::edited);
    connect(fromFile_, &QPushButton::clicked, this, &PipelineSection::scheduleFileWanted);
    connect(text_, &ScheduleText::edited, this, &PipelineSection::takeText);
    connect(fix_, &QPushButton::clicked, this, &PipelineSection::applyFix);
}

void PipelineSection::offerSchedules()
{
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies()) {
        schedule_->addItem(toQt(family.title), toQt(family.name));
        schedule_->setItemData(schedule_->count() - 1,
                               tr("%1\nTakes: %2\nSource: %3").arg(toQt(family.idea), toQt(family.conditions), toQt(family.source)),
                               Qt::ToolTipRole);
    }
}

// What cannot be read stays as it was typed, with its reason, and changes nothing.
void PipelineSection::takeText(const QString& text)
{
    engine::Expected<engine::Plan> custom = withCustomSchedule(plan(), fromQt(text));
    textProblem_->say(custom.ok() ? QString() : toQt(custom.error().message));
    if (!custom.ok()) return;
    change(tr("text of the schedule"), "scheduleText", [&](engine::Plan& plan) { plan = std::move(custom).value(); });
}

void PipelineSection::showPlan()
{
    const engine::PipelineSpec& pipeline = plan().pipeline;
    const QString name = toQt(pipeline.schedule);
    const bool custom = pipeline.schedule == "custom";
    // It cannot be chosen without its text: the box has it as long as the plan does.
    const int customRow = schedule_->findData(QStringLiteral("custom"));
    if (custom && customRow < 0) schedule_->addItem(tr("Custom"), name);
    if (!custom && customRow >= 0) schedule_->removeItem(customRow);
    select(*schedule_, name);
    text_->setVisible(custom);
    // A text that is not the plan's is still being typed; another plan takes its place.
    if (textProblem_->text().isEmpty() || !judged_ || judged_->pipeline.customSchedule != pipeline.customSchedule) {
        text_->setText(toQt(pipeline.customSchedule));
        textProblem_->say({});
    }
    const engine::ScheduleFamily* family = engine::findFamily(pipeline.schedule);
    idea_->setText(family ? toQt(family->idea) : tr("The order that the plan's own schedule gives."));
    ranks_->setValue(pipeline.ranks);
    chunks_->setValue(pipeline.chunks);
    microbatches_->setValue(pipeline.microbatches);
    slices_->setValue(pipeline.slices);
    const QString given = tr("The schedule's text gives this number.");
    setCapability(*ranks_, !custom, given);
    setCapability(*microbatches_, !custom, given);

    const bool oneChunk = family && family->minChunks == family->maxChunks;
    if (custom) setCapability(*chunks_, false, given);
    else setCapability(*chunks_, !oneChunk || pipeline.chunks != family->minChunks,
                  family ? tr("%1 takes %2 per rank.").arg(toQt(family->title), counted(family->minChunks, "chunk")) : QString());

    if (custom) setCapability(*slices_, false, given);
    else setCapability(*slices_, !family || family->cutsSequences || pipeline.slices != 1,
                       family ? tr("%1 takes sequences whole; Seq1F1B cuts them.").arg(toQt(family->title)) : QString());

    options_->setPlan(plan());

    if (!isJudged()) judge();
    problem_->say(verdict_);
    fix_->setVisible(legal_.has_value());
    if (!legal_) return;
    const QString what = toQt(engine::changeText(*legal_));
    fix_->setText(tr("Use %1").arg(what));
    describe(*fix_, tr("Use %1").arg(what), tr("Changes the one number that keeps the schedule from being built."));
}

// A generator judges a request at once; a schedule written out has to be read, which takes as long as it is, and costs change nothing
// in it.
bool PipelineSection::isJudged() const
{
    if (!judged_) return false;
    const engine::ScheduleFamily* family = engine::findFamily(plan().pipeline.schedule);
    return family && family->plansByCosts ? *judged_ == plan() : judged_->pipeline == plan().pipeline;
}

void PipelineSection::judge()
{
    const engine::ScheduleVerdict verdict = judgeSchedule(plan());
    judged_ = plan();
    verdict_ = verdict.possible.ok() ? QString() : toQt(verdict.possible.error().message);
    legal_ = verdict.nearest;
}

void PipelineSection::applyFix()
{
    if (!legal_) return;
    const LegalChange legal = *legal_;
    choose(tr("nearest possible value"), [&](engine::Plan& plan) { plan = engine::withChange(plan, legal); });
}

} // namespace stagecraft::ui
