// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/plan_document.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"

#include <QFileInfo>
#include <QUndoCommand>

#include <utility>

namespace stagecraft::ui {

class PlanDocument::EditCommand : public QUndoCommand {
public:
    EditCommand(PlanDocument& document, engine::Plan after, const QString& what, QString typedInto)
        : QUndoCommand(what), document_(document), before_(document.plan()), after_(std::move(after)), typedInto_(std::move(typedInto)),
          at_(document.clock_())
    {
    }
    void undo() override { document_.show(before_); }
    void redo() override { document_.show(after_); }
    int id() const override { return 1; }
    bool mergeWith(const QUndoCommand* next) override
    {
        const auto& later = static_cast<const EditCommand&>(*next);
        if (typedInto_.isEmpty() || later.typedInto_ != typedInto_ || later.at_ - at_ > kTypingPause) return false;
        after_ = later.after_;
        at_ = later.at_;
        setObsolete(after_ == before_);
        return true;
    }

private:
    PlanDocument& document_;
    engine::Plan before_;
    engine::Plan after_;
    QString typedInto_;
    std::chrono::milliseconds at_; // of the newest edit in it
};

PlanDocument::PlanDocument(QObject* parent)
    : QObject(parent), clock_([] {
          return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
      })
{
    connect(&undo_, &QUndoStack::cleanChanged, this, &PlanDocument::titleChanged);
}

void PlanDocument::edit(engine::Plan plan, const QString& what, const QString& typedInto)
{
    if (plan == plan_) return;
    undo_.push(new EditCommand(*this, std::move(plan), what, typedInto));
}

void PlanDocument::startFrom(engine::Plan plan) { adopt(std::move(plan), {}); }

traces::Expected<void> PlanDocument::open(const QString& file)
{
    traces::Expected<engine::Plan> plan = engine::loadPlan(fromQt(file));
    if (!plan.ok()) return plan.error();
    adopt(std::move(plan).value(), file);
    return {};
}

traces::Expected<void> PlanDocument::save() { return saveAs(file_); }

traces::Expected<void> PlanDocument::saveAs(const QString& file)
{
    const traces::Expected<void> saved = engine::savePlan(plan_, fromQt(file));
    if (!saved.ok()) return saved;
    file_ = file;
    undo_.setClean();
    emit titleChanged();
    return {};
}

QString PlanDocument::title() const
{
    if (!file_.isEmpty()) return QFileInfo(file_).fileName();
    return plan_.name.empty() ? tr("untitled") : toQt(plan_.name);
}

void PlanDocument::show(const engine::Plan& plan)
{
    plan_ = plan;
    emit changed();
}

void PlanDocument::adopt(engine::Plan plan, const QString& file)
{
    file_ = file;
    undo_.clear();
    show(plan);
    emit titleChanged();
}

} // namespace stagecraft::ui
