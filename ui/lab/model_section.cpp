// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/model_section.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/layer_model.h"
#include "ui/lab/model_edits.h"
#include "ui/lab/quantities.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

namespace stagecraft::ui {
namespace {

constexpr const char* kNoModel = "";
constexpr const char* kOwnModel = "own"; // one that is no preset's

} // namespace

ModelSection::ModelSection(QWidget* parent)
    : LabSection(parent), model_(newCombo()), rows_(newSpin(1, 1 << 20)), summary_(new QLabel),
      partition_(new ValueEdit<engine::Partition>(parsePartition, showPartition)), balance_(new QPushButton(tr("Balance"))),
      problem_(new InlineNote(InlineNote::Tone::Problem)), layers_(new LayerModel(this)), table_(new QTableView)
{
    model_->setObjectName("model");
    rows_->setObjectName("rows");
    partition_->setObjectName("partition");
    balance_->setObjectName("balance");
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
    // A number for each stage takes more room than the column of fields has.
    addEdit(*form, tr("La&yers per stage"), *partition_, tr("How many layers each stage takes, first stage first, separated by commas."),
            LabelPlace::Above);
    form->addRow(QString(), balance_);
    describe(*balance_, tr("Balance"), tr("Cuts the layers so that the largest stage computes as little as possible."));

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
    connect(rows_, &QSpinBox::valueChanged, this, [this](int value) {
        change(tr("rows of a micro-batch"), "rows", [&](engine::Plan& plan) { plan.model.microbatchRows = value; });
    });
    partition_->edited = [this](const engine::Partition& partition) {
        change(tr("layers per stage"), "partition", [&](engine::Plan& plan) { plan.partition = partition; });
    };
    connect(balance_, &QPushButton::clicked, this, [this] {
        choose(tr("balanced layers"), [](engine::Plan& plan) { plan.partition.clear(); });
    });
}

void ModelSection::showModelChoice()
{
    const engine::ModelSpec& model = plan().model;
    QString name = model.empty() ? kNoModel : kOwnModel;
    for (const ModelChoice& choice : modelChoices()) {
        engine::ModelSpec preset = choice.model;
        preset.microbatchRows = model.microbatchRows;
        if (!model.empty() && preset == model) name = toQt(choice.name);
    }
    if (name == kOwnModel && model_->findData(name) < 0) model_->addItem(tr("own (from the plan)"), name);
    select(*model_, name);
}

void ModelSection::showPlan()
{
    const engine::ModelSpec& model = plan().model;
    showModelChoice();
    rows_->setValue(model.microbatchRows);
    summary_->setText(toQt(modelSummary(plan())));
    const QString reason = tr("The plan has no model.");
    setCapability(*rows_, !model.empty(), reason);
    setCapability(*partition_, !model.empty(), reason);
    setCapability(*balance_, !model.empty() && !plan().partition.empty(),
                  model.empty() ? reason : tr("The layers are balanced already."));

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
