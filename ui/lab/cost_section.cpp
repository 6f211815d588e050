// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/cost_section.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/stage_cost_model.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

using engine::CostSource;
using engine::CostSpec;
using traces::Bytes;
using traces::TimeNs;

template <class T>
void CostSection::bindCost(ValueEdit<T>& edit, const char* name, const QString& what, T CostSpec::*member)
{
    bind(edit, name, what, [member](engine::Plan& plan) -> T& { return plan.costs.*member; });
}

// A part of the backward: with both given the backward is their sum, and a file that said another one could not be read.
void CostSection::bindPart(ValueEdit<MaybeDuration>& edit, const char* name, const QString& what, MaybeDuration CostSpec::*member)
{
    bindCost(edit, name, what, member);
    edit.edited = [this, what, control = QString(name), member](const MaybeDuration& value) {
        change(what, control, [&](engine::Plan& plan) {
            CostSpec& costs = plan.costs;
            costs.*member = value;
            if (costs.inputGrad && costs.weightGrad) costs.backward = *costs.inputGrad + *costs.weightGrad;
        });
    };
}

CostSection::CostSection(QWidget* parent)
    : LabSection(parent), source_(newCombo()), origin_(new QLabel),
      forward_(new ValueEdit<TimeNs>(traces::parseDuration, showDuration)),
      backward_(new ValueEdit<TimeNs>(traces::parseDuration, showDuration)),
      inputGrad_(new ValueEdit<MaybeDuration>(parseMaybeDuration, showMaybeDuration)),
      weightGrad_(new ValueEdit<MaybeDuration>(parseMaybeDuration, showMaybeDuration)),
      overlap_(new ValueEdit<MaybeDuration>(parseMaybeDuration, showMaybeDuration)),
      attention_(new ValueEdit<MaybeShare>(parseMaybeShare, showMaybeShare)),
      flops_(new ValueEdit<double>(parseFlopRate, showFlopRate)), activation_(new ValueEdit<Bytes>(parseAutoSize, showAutoSize)),
      wgrad_(new ValueEdit<Bytes>(traces::parseSize, showSize)), latency_(new ValueEdit<TimeNs>(traces::parseDuration, showDuration)),
      bandwidth_(new ValueEdit<double>(parseMaybeBandwidth, showMaybeBandwidth)),
      boundary_(new ValueEdit<Bytes>(parseAutoSize, showAutoSize)), jitter_(new ValueEdit<double>(parseJitter, showJitter)),
      seed_(new ValueEdit<std::uint64_t>(parseSeed, showSeed)),
      problem_(new InlineNote(InlineNote::Tone::Problem)), stages_(new StageCostModel(this)), table_(new QTableView)
{
    source_->setObjectName("costSource");
    origin_->setObjectName("costOrigin");
    origin_->setTextFormat(Qt::PlainText);
    table_->setObjectName("stageCosts");
    problem_->setObjectName("costProblem");
    origin_->setWordWrap(true);
    origin_->setProperty("tone", "hint");
    source_->addItem(tr("assumed"), static_cast<int>(CostSource::Assumed));
    source_->addItem(tr("from the model"), static_cast<int>(CostSource::Model));
    source_->addItem(tr("measured"), static_cast<int>(CostSource::Measured));

    QFormLayout* form = newForm();
    addField(*form, tr("Sour&ce"), *source_, tr("Where the times of the simulation come from."));
    form->addRow(origin_);
    addEdit(*form, tr("F&orward"), *forward_,
             tr("Time of one rank's forward of one micro-batch through all its chunks, such as 1.5ms."));
    addEdit(*form, tr("Back&ward"), *backward_,
             tr("Time of one rank's full backward of one micro-batch through all its chunks, such as 3ms."));
    addEdit(*form, tr("Input gradient"), *inputGrad_,
             tr("The part of the backward that the stage before waits for; give it together with the weight gradient, or leave both at auto."));
    addEdit(*form, tr("Weight gradient"), *weightGrad_,
             tr("The part of the backward that nobody waits for; give it together with the input gradient, or leave both at auto."));
    addEdit(*form, tr("Overlapped pair"), *overlap_,
             tr("Time of a forward and a backward that a rank does together (OVERLAP_F_B); auto takes the sum of the two."));
    addEdit(*form, tr("Attention share"), *attention_,
             tr("The part of a forward that is attention: it grows with the position, so that later slices of a sequence take longer; auto takes it from the model."));
    addEdit(*form, tr("Computin&g rate"), *flops_, tr("Arithmetic a rank does in a second, from which the model's times are estimated."));
    addEdit(*form, tr("Kept by forward"), *activation_,
             tr("Bytes that a rank keeps of one micro-batch from its forward to its backward; auto takes them from the model."));
    addEdit(*form, tr("Kept until W"), *wgrad_,
             tr("The part of these bytes that stays after the input gradient, until the weight gradient is computed."));
    addEdit(*form, tr("&Latency"), *latency_, tr("Time that each transfer between two ranks takes beside its bytes."));
    addEdit(*form, tr("Bandwidth"), *bandwidth_, tr("Speed of the link between two ranks, such as 25GB/s."));
    addEdit(*form, tr("Boundary tensor"), *boundary_,
             tr("Bytes handed from one stage to the next per micro-batch; auto takes them from the model."));
    addEdit(*form, tr("&Jitter"), *jitter_, tr("Relative spread of every action's time, for runs that are not even."));
    addEdit(*form, tr("Jitter's seed"), *seed_, tr("Makes the jitter's random numbers; the same seed gives the same times."));

    stages_->setObjectName("stageCostModel");
    table_->setModel(stages_);
    table_->setShowGrid(false);
    table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    table_->setTabKeyNavigation(false);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 4);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table_->horizontalHeader()->setSectionResizeMode(StageCostModel::Backward, QHeaderView::Stretch);
    table_->horizontalHeader()->setMinimumSectionSize(30);
    describe(*table_, tr("Costs per stage"), tr("The costs in use for each stage, with a factor to make stages uneven."));

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);
    layout->addWidget(table_);

    bindCost(*forward_, "forward", tr("forward time"), &CostSpec::forward);
    bindCost(*backward_, "backward", tr("backward time"), &CostSpec::backward);
    bindPart(*inputGrad_, "inputGrad", tr("input gradient time"), &CostSpec::inputGrad);
    bindPart(*weightGrad_, "weightGrad", tr("weight gradient time"), &CostSpec::weightGrad);
    bindCost(*overlap_, "overlap", tr("time of an overlapped pair"), &CostSpec::overlap);
    bindCost(*attention_, "attentionShare", tr("attention share"), &CostSpec::attentionShare);
    bindCost(*flops_, "flops", tr("computing rate"), &CostSpec::flopsPerSecond);
    bindCost(*activation_, "activationBytes", tr("bytes kept"), &CostSpec::activationBytes);
    bindCost(*wgrad_, "wgradBytes", tr("bytes kept until W"), &CostSpec::wgradBytes);
    bindCost(*latency_, "latency", tr("latency"), &CostSpec::latency);
    bindCost(*bandwidth_, "bandwidth", tr("bandwidth"), &CostSpec::bandwidth);
    bindCost(*boundary_, "boundaryBytes", tr("boundary tensor"), &CostSpec::boundaryBytes);
    bindCost(*jitter_, "jitter", tr("jitter"), &CostSpec::jitter);
    bindCost(*seed_, "jitterSeed", tr("seed of the jitter"), &CostSpec::seed);
    connect(source_, &QComboBox::currentIndexChanged, this, [this] {
        const auto source = static_cast<CostSource>(source_->currentData().toInt());
        choose(tr("source of costs"), [&](engine::Plan& plan) { plan.costs.source = source; });
    });
    connect(stages_, &StageCostModel::factorsEdited, this, [this](const std::vector<double>& factors) {
        choose(tr("stage factors"), [&](engine::Plan& plan) { plan.costs.stageScale = factors; });
    });
}

void CostSection::showPlan()
{
    const CostSpec& costs = plan().costs;
    const bool assumed = costs.source == CostSource::Assumed;
    const bool hasModel = !plan().model.empty();
    setItemEnabled(*source_, static_cast<int>(CostSource::Model), hasModel, tr("The plan has no model."));
    setItemEnabled(*source_, static_cast<int>(CostSource::Measured), !costs.measured.empty(),
                   tr("Nothing was measured yet: run the plan, then take its times over."));
    select(*source_, static_cast<int>(costs.source));

    const engine::Expected<engine::CostTable> table = costsOf(plan());
    origin_->setText(table.ok() ? tr("In use: %1").arg(toQt(table.value().origin)) : QString());
    origin_->setVisible(table.ok());
    forward_->setValue(costs.forward);
    backward_->setValue(costs.backward);
    inputGrad_->setValue(costs.inputGrad);
    weightGrad_->setValue(costs.weightGrad);
    overlap_->setValue(costs.overlap);
    attention_->setValue(costs.attentionShare);
    setCapability(*attention_, plan().pipeline.slices > 1, tr("Sequences go through whole: there is one slice."));
    flops_->setValue(costs.flopsPerSecond);
    activation_->setValue(costs.activationBytes);
    wgrad_->setValue(costs.wgradBytes);
    latency_->setValue(costs.latency);
    bandwidth_->setValue(costs.bandwidth);
    boundary_->setValue(costs.boundaryBytes);
    jitter_->setValue(costs.jitter);
    seed_->setValue(costs.seed);
    setCapability(*seed_, costs.jitter > 0, tr("There is no jitter."));

    const QString notAssumed = tr("Used with assumed costs only.");
    for (QWidget* control : {static_cast<QWidget*>(forward_), static_cast<QWidget*>(backward_),
                             static_cast<QWidget*>(inputGrad_), static_cast<QWidget*>(weightGrad_)})
        setCapability(*control, assumed, notAssumed);
    const bool bothOrNone = costs.inputGrad.has_value() == costs.weightGrad.has_value();
    if (assumed) setCapability(*backward_, !costs.inputGrad || !costs.weightGrad, tr("It is the sum of the two gradients below."));
    setCapability(*flops_, costs.source == CostSource::Model, tr("Used with costs from the model only."));

    if (!bothOrNone) problem_->say(tr("Give both gradients' times, or neither (auto)."));
    else problem_->say(table.ok() ? QString() : toQt(table.error().message));
    stages_->setPlan(plan());
    const int rows = std::min(stages_->rowCount(), 8);
    table_->setFixedHeight(table_->horizontalHeader()->sizeHint().height() +
                           rows * table_->verticalHeader()->defaultSectionSize() + 2 * table_->frameWidth() + 2);
}

} // namespace stagecraft::ui
