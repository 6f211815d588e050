// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/data_section.h"

#include "engine/data/dataset.h"
#include "ui/bridge/text.h"
#include "ui/lab/form.h"
#include "ui/lab/path_field.h"

#include <QFormLayout>
#include <QVBoxLayout>

namespace stagecraft::ui {

using engine::DataSource;
using engine::DataSpec;
using engine::Plan;
using engine::TokenUnit;

DataSection::DataSection(QWidget* parent)
    : LabSection(parent), source_(newCombo()), tokens_(newCombo()), path_(new PathField(PathField::Kind::File, "dataPath")),
      targets_(new PathField(PathField::Kind::File, "dataTargets")), problem_(new InlineNote(InlineNote::Tone::Problem))
{
    problem_->setObjectName("dataProblem");
    offer<DataSource>(*source_, {{tr("random"), DataSource::Synthetic, tr("Made from the run's seed, one batch for all steps.")},
                                 {tr("a text"), DataSource::Text, tr("Another piece of it each step; the model learns the next token.")},
                                 {tr("images (IDX)"), DataSource::Idx, tr("Images and labels as MNIST has them, unpacked.")},
                                 {tr("arrays (NPY)"), DataSource::Npy, tr("Arrays of NumPy, a row per sample.")}});
    offer<TokenUnit>(*tokens_, {{tr("characters"), TokenUnit::Character}, {tr("bytes"), TokenUnit::Byte}});

    QFormLayout* form = newForm();
    addField(*form, tr("Learns from"), *source_, tr("Where the rows of a run's batches come from; a simulation has no data."));
    addPath(*form, tr("File"), *path_, tr("The text, or the inputs; looked for where the engine runs. A text without a file is the one that comes with the program."));
    addPath(*form, tr("Targets"), *targets_, tr("The file of the labels or targets, a row for each row of the inputs."));
    addField(*form, tr("Tokens"), *tokens_, tr("What of the text is a token: each character there is in it, or each byte."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);

    source_->setObjectName("dataSource");
    // The files of one source are none of another's.
    connect(source_, &QComboBox::currentIndexChanged, this, [this] {
        choose(tr("what a run learns from"),
               [this](Plan& plan) { plan.data = DataSpec{.source = static_cast<DataSource>(source_->currentData().toInt()), .path = {}, .targets = {}}; });
    });
    bind(*tokens_, "dataTokens", tr("tokens"), [](Plan& plan) -> auto& { return plan.data.tokens; });
    bind(path_->edit(), "dataPath", tr("file of the data"), [](Plan& plan) -> auto& { return plan.data.path; });
    bind(targets_->edit(), "dataTargets", tr("file of the targets"), [](Plan& plan) -> auto& { return plan.data.targets; });
}

void DataSection::showPlan()
{
    const DataSpec& data = plan().data;
    const bool text = data.source == DataSource::Text;
    const bool samples = data.source == DataSource::Idx || data.source == DataSource::Npy;
    select(*source_, data.source);
    select(*tokens_, data.tokens);
    path_->setValue(data.path);
    targets_->setValue(data.targets);
    path_->edit().setPlaceholderText(text ? tr("the program's own text") : QString());

    const QString noData = tr("Random data is made from the seed.");
    path_->setAvailable(text || samples, noData);
    targets_->setAvailable(samples, text ? tr("The targets of a text are its next tokens.") : noData);
    setCapability(*tokens_, text, samples ? tr("Images and arrays have no tokens of their own.") : noData);

    const engine::Expected<void> sound = engine::checkData(data, plan().model);
    problem_->say(sound.ok() ? QString() : toQt(sound.error().message));
}

} // namespace stagecraft::ui
