// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/model_section.h"

#include "engine/model/tied.h"
#include "engine/plan/partition_rules.h"
#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/layer_model.h"
#include "ui/lab/model_edits.h"
#include "ui/lab/quantities.h"

#include <QFormLayout>
#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::PartitionRule;

namespace {

constexpr const char* kNoModel = "";
constexpr const char* kOwnModel = "own"; // one that is no preset's
constexpr int kByHand = -1;              // beside the rules

QString partitionTip()
{
    return ModelSection::tr("How many layers each stage takes, first stage first, such as 3, 2, 3; or Megatron-LM's layout: E an embedding, t a layer, "
                            "L the head, | between stages, as in Et*2|ttt|tL.");
}

} // namespace

ModelSection::ModelSection(QWidget* parent)
    : LabSection(parent), model_(newCombo()), rows_(newSpin(1, 1 << 20)), tied_(new QCheckBox(tr("Tied to the head"))), summary_(new QLabel), rule_(newCombo()),
      partition_(new ValueEdit<engine::Partition>([this](std::string_view text) { return parseLayers(plan().model, text); }, showPartition)),
      problem_(new InlineNote(InlineNote::Tone::Problem)), layers_(new LayerModel(this)), table_(new QTableView)
{
    model_->setObjectName("model");
    rule_->setObjectName("partitionRule");
    table_->setObjectName("layers");
    problem_->setObjectName("modelProblem");
    summary_->setWordWrap(true);
    summary_->setTextFormat(Qt::PlainText);
    summary_->setProperty("tone", "hint");
    summary_->setObjectName("modelSummary");
    makeSelectable(*summary_);

    QFormLayout* form = newForm();
    addField(*form, tr("&Model"), *model_, tr("The network that a run trains and whose sizes the estimates use."));
    addField(*form, tr("Row&s"), *rows_, tr("Rows of one micro-batch."));
    addField(*form, tr("Embeddings"), *tied_,
             tr("The head's matrix is the embedding's table; in several stages the first and the last sum its gradients before each update."));
    addField(*form, tr("Partition"), *rule_, tr("How the layers are given out: the largest stage has as little of this as can be."));
    // A number for each stage takes more room than the column of fields has.
    addEdit(*form, tr("La&yers per stage"), *partition_, partitionTip(), LabelPlace::Above);

    table_->setModel(layers_);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setShowGrid(false);
    table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    table_->setTabKeyNavigation(false);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(table_->fontMetrics().height() + 4);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    table_->horizontalHeader()->setSectionResizeMode(LayerModel::Name, QHeaderView::Stretch);
    table_->horizontalHeader()->setMinimumSectionSize(30);
    describe(*table_, tr("Layers"), tr("The layers of the model, the stage that holds each, and their sizes."));

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);
    layout->addWidget(summary_);
    layout->addWidget(table_);

    model_->addItem(tr("none (times only)"), QString(kNoModel));
    for (const ModelChoice& choice : modelChoices()) model_->addItem(toQt(choice.name), toQt(choice.name));
    connect(model_, &QComboBox::currentIndexChanged, this, [this] {
        const std::string name = fromQt(model_->currentData().toString());
        choose(tr("model"), [&](engine::Plan& plan) {
            if (name == kOwnModel) return;
            engine::ModelSpec chosen;
            for (const ModelChoice& choice : modelChoices())
                if (choice.name == name) chosen = choice.model;
            plan = withModel(plan, chosen);
        });
    });
    bind(*rows_, "rows", tr("rows of a micro-batch"), [](engine::Plan& plan) -> auto& { return plan.model.microbatchRows; });
    bind(*tied_, "tied", tr("tied embeddings"), [](engine::Plan& plan) -> auto& { return plan.model.tiedEmbeddings; });
    offer<PartitionRule>(*rule_, {{tr("even FLOPs"), PartitionRule::Flops, tr("Those of forward and backward.")},
                                  {tr("even layers"), PartitionRule::Uniform, tr("Their numbers differ by one at most.")},
                                  {tr("even parameters"), PartitionRule::Parameters},
                                  {tr("even memory"), PartitionRule::Memory, tr("Weights, optimizer, gradients, and the activations that the schedule has in flight.")},
                                  {tr("even measured time"), PartitionRule::Time, tr("By the costs that a run measured; the layers then stand as a list by hand, with those costs fitted to it.")}});
    rule_->addItem(tr("by hand"), kByHand);
    rule_->setItemData(rule_->count() - 1, tr("The numbers below stay as they are, or as they are typed."), Qt::ToolTipRole);
    connect(rule_, &QComboBox::currentIndexChanged, this, &ModelSection::takeRule);
    partition_->setObjectName("partition");
    partition_->edited = [this](const engine::Partition& partition) {
        change(tr("layers per stage"), "partition", [&](engine::Plan& plan) { plan = withTypedLayers(std::move(plan), partition); });
    };
}

void ModelSection::takeRule()
{
    const int rule = rule_->currentData().toInt();
    choose(tr("rule of the partition"), [rule](engine::Plan& plan) {
        if (rule != kByHand) {
            engine::Expected<engine::Plan> ruled = engine::withPartition(plan, engine::partitionRuleText(static_cast<PartitionRule>(rule)));
            if (ruled.ok()) plan = std::move(ruled).value();
            return;
        }
        engine::Expected<engine::Partition> used = partitionOf(plan);
        if (used.ok()) plan = engine::withLayers(std::move(plan), std::move(used).value());
    });
    setPlan(engine::Plan(plan())); // by time there is a list, and no rule; nor is there one where nothing could be done
}

void ModelSection::showModelChoice()
{
    const engine::ModelSpec& model = plan().model;
    QString name = model.empty() ? kNoModel : kOwnModel;
    for (const ModelChoice& choice : modelChoices()) {
        engine::ModelSpec preset = choice.model;
        preset.microbatchRows = model.microbatchRows; // with controls of their own
        preset.tiedEmbeddings = model.tiedEmbeddings;
        if (!model.empty() && preset == model) name = toQt(choice.name);
    }
    if (name == kOwnModel && model_->findData(name) < 0) model_->addItem(tr("own (from the plan)"), name);
    select(*model_, name);
}

void ModelSection::showTied()
{
    engine::ModelSpec tied = plan().model;
    tied_->setChecked(tied.tiedEmbeddings);
    tied.tiedEmbeddings = true;
    const engine::ScheduleFamily* family = engine::findFamily(plan().pipeline.schedule);
    QString why;
    if (tied.empty()) why = tr("The plan has no model.");
    else if (!engine::checkTied(tied).ok()) why = tr("It takes an embedding as the first layer and a head of the same vocabulary and dim as the last.");
    else if (family && family->asynchronous) why = tr("%1 updates each stage by itself, and the two copies of the table would go apart.").arg(toQt(family->title));
    setCapability(*tied_, why.isEmpty() || plan().model.tiedEmbeddings, why); // what cannot be can be taken out again
}

void ModelSection::showRule()
{
    const bool model = !plan().model.empty();
    setCapability(*rule_, model, tr("The plan has no model."));
    setItemEnabled(*rule_, static_cast<int>(PartitionRule::Time), !plan().costs.measured.empty(),
                   tr("Nothing was measured yet: run the plan, then take its times over."));
    if (plan().partition.empty()) select(*rule_, plan().partitionRule);
    else select(*rule_, QVariant(kByHand));
}

void ModelSection::showPlan()
{
    const engine::ModelSpec& model = plan().model;
    showModelChoice();
    showTied();
    showRule();
    rows_->setValue(model.microbatchRows);
    summary_->setText(toQt(modelSummary(plan())));
    const QString reason = tr("The plan has no model.");
    setCapability(*rows_, !model.empty(), reason);
    const QString layout = toQt(layoutInUse(plan()));
    describe(*partition_, partition_->accessibleName(), layout.isEmpty() ? partitionTip() : partitionTip() + "\n\n" + tr("Now, as a layout: %1").arg(layout));
    setCapability(*partition_, !model.empty(), reason);

    QString problem;
    engine::Partition shown = plan().partition;
    if (!model.empty()) {
        const engine::Expected<void> sound = checkModel(model);
        const engine::Expected<engine::Partition> inUse = partitionOf(plan());
        if (!sound.ok()) problem = toQt(sound.error().message);
        else if (!inUse.ok()) problem = toQt(inUse.error().message);
        else shown = inUse.value();
    }
    partition_->setValue(shown);
    problem_->say(problem);
    layers_->setPlan(plan());
    table_->setVisible(!model.empty());
    const int rows = std::min(layers_->rowCount(), 6);
    table_->setFixedHeight(table_->horizontalHeader()->sizeHint().height() +
                           rows * table_->verticalHeader()->defaultSectionSize() + 2 * table_->frameWidth() + 2);
}

} // namespace stagecraft::ui
