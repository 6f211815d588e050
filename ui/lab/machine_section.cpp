// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/machine_section.h"

#include "ui/bridge/text.h"
#include "ui/lab/form.h"

#include <QFormLayout>
#include <QVBoxLayout>

#include <algorithm>

namespace stagecraft::ui {

using engine::MachineModel;
using engine::Plan;
using engine::Recompute;
using engine::SendMode;
using engine::TransferPlace;
using traces::Bytes;
using traces::TimeNs;

namespace {

constexpr int kMostReplicas = 1 << 20;

} // namespace

MachineSection::MachineSection(QWidget* parent)
    : LabSection(parent), memory_(new ValueEdit<Bytes>(parseMaybeSize, showMaybeSize)), recompute_(newCombo()), send_(newCombo()),
      transfers_(newCombo()), sharedLinks_(new QCheckBox(tr("One after the other"))), perNode_(newSpin(0, engine::kMaxStages)),
      nodeLatency_(new ValueEdit<TimeNs>(traces::parseDuration, showDuration)),
      nodeBandwidth_(new ValueEdit<double>(parseMaybeBandwidth, showMaybeBandwidth)),
      rankScale_(new ValueEdit<std::vector<double>>(parseFactors, showFactors)),
      lateStart_(new ValueEdit<std::vector<TimeNs>>(parseDurations, showDurations)),
      hostLatency_(new ValueEdit<TimeNs>(traces::parseDuration, showDuration)),
      hostBandwidth_(new ValueEdit<double>(parseMaybeBandwidth, showMaybeBandwidth)), replicas_(newSpin(1, kMostReplicas)),
      replicaLatency_(new ValueEdit<TimeNs>(traces::parseDuration, showDuration)),
      replicaBandwidth_(new ValueEdit<double>(parseMaybeBandwidth, showMaybeBandwidth)),
      bucket_(new ValueEdit<Bytes>(traces::parseSize, showSize)), barrier_(new QCheckBox(tr("Wait for all ranks"))),
      problem_(new InlineNote(InlineNote::Tone::Problem))
{
    problem_->setObjectName("machineProblem");
    perNode_->setSpecialValueText(tr("all"));
    offer<Recompute>(*recompute_, {{tr("no"), Recompute::None}, {tr("all activations"), Recompute::Full}});
    offer<SendMode>(*send_, {{tr("never wait"), SendMode::Buffered}, {tr("wait for their receipt"), SendMode::Rendezvous}, {tr("one queue per pair"), SendMode::Channel}});
    offer<TransferPlace>(*transfers_, {{tr("nothing"), TransferPlace::Nothing}, {tr("the sender's copy lane"), TransferPlace::CopyLane}, {tr("both ranks"), TransferPlace::Ranks}});

    QFormLayout* form = newForm();
    addEdit(*form, tr("Memory of a rank"), *memory_, tr("What a rank can hold, such as 80GiB; the memory plot marks where it would run out, and a live run fails there."));
    addField(*form, tr("Recompute"), *recompute_,
             tr("A forward keeps its input alone, and its activations are computed again right before the backward."));
    addField(*form, tr("Sends"), *send_, tr("Whether a send waits for its receiver; where it does, an order of actions can deadlock."));
    addField(*form, tr("Transfers occupy"), *transfers_, tr("What a transfer between two ranks keeps from other work."));
    addField(*form, tr("Shared links"), *sharedLinks_, tr("Transfers over one link go one after the other, and do not share its bandwidth."));
    addField(*form, tr("Ranks per node"), *perNode_, tr("How many ranks lie on one node; between nodes the two values below hold."));
    addEdit(*form, tr("Node latency"), *nodeLatency_, tr("Time that a transfer from one node to another takes beside its bytes."));
    addEdit(*form, tr("Node bandwidth"), *nodeBandwidth_, tr("Speed of the link from one node to another, such as 25GB/s."));
    addEdit(*form, tr("Rank factors"), *rankScale_, tr("A factor on all times of each rank, such as 1, 1, 1.5, 1 for a slow third one; empty: all alike."));
    addEdit(*form, tr("Late starts"), *lateStart_, tr("When each rank begins, such as 0, 0, 5ms, 0; empty: all at once."));
    addEdit(*form, tr("Host latency"), *hostLatency_, tr("Time that a copy to the host's memory takes beside its bytes (OFFLOAD, RELOAD)."));
    addEdit(*form, tr("Host bandwidth"), *hostBandwidth_, tr("Speed of copies to the host's memory and back, such as 50GB/s."));
    addField(*form, tr("Replicas"), *replicas_, tr("Pipelines like this one that train on other data; their gradients are summed."));
    addEdit(*form, tr("Replica latency"), *replicaLatency_, tr("Between the ranks that hold the same stage, for each round of a ring."));
    addEdit(*form, tr("Replica bandwidth"), *replicaBandwidth_, tr("Between the ranks that hold the same stage, such as 100GB/s."));
    addEdit(*form, tr("Bucket"), *bucket_, tr("Gradients that are summed at a time, beside the backward."));
    addField(*form, tr("Update"), *barrier_, tr("No rank updates its weights before all have their gradients."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(form);
    layout->addWidget(problem_);

    bind(*memory_, "deviceMemory", tr("memory of a rank"), [](Plan& plan) -> auto& { return plan.machine.memory; });
    bind(*nodeLatency_, "nodeLatency", tr("latency between nodes"), [](Plan& plan) -> auto& { return plan.machine.between.latency; });
    bind(*nodeBandwidth_, "nodeBandwidth", tr("bandwidth between nodes"), [](Plan& plan) -> auto& { return plan.machine.between.bytesPerSecond; });
    bind(*rankScale_, "rankScale", tr("rank factors"), [](Plan& plan) -> auto& { return plan.machine.rankScale; });
    bind(*lateStart_, "lateStart", tr("late starts"), [](Plan& plan) -> auto& { return plan.machine.lateStart; });
    bind(*hostLatency_, "hostLatency", tr("latency to the host"), [](Plan& plan) -> auto& { return plan.machine.host.latency; });
    bind(*hostBandwidth_, "hostBandwidth", tr("bandwidth to the host"), [](Plan& plan) -> auto& { return plan.machine.host.bytesPerSecond; });
    bind(*replicaLatency_, "replicaLatency", tr("latency between replicas"), [](Plan& plan) -> auto& { return plan.machine.replica.latency; });
    bind(*replicaBandwidth_, "replicaBandwidth", tr("bandwidth between replicas"), [](Plan& plan) -> auto& { return plan.machine.replica.bytesPerSecond; });
    bind(*bucket_, "bucketBytes", tr("size of a bucket"), [](Plan& plan) -> auto& { return plan.machine.bucketBytes; });
    bind(*sharedLinks_, "sharedLinks", tr("shared links"), [](Plan& plan) -> auto& { return plan.machine.sharedLinks; });
    bind(*barrier_, "barrier", tr("barrier before the update"), [](Plan& plan) -> auto& { return plan.machine.barrier; });
    bind(*recompute_, "recompute", tr("recompute"), [](Plan& plan) -> auto& { return plan.pipeline.recompute; });
    bind(*send_, "sendMode", tr("sends"), [](Plan& plan) -> auto& { return plan.machine.send; });
    bind(*transfers_, "transferPlace", tr("what transfers occupy"), [](Plan& plan) -> auto& { return plan.machine.transfers; });
    bind(*perNode_, "ranksPerNode", tr("ranks per node"), [](Plan& plan) -> auto& { return plan.machine.ranksPerNode; });
    bind(*replicas_, "replicas", tr("replicas"), [](Plan& plan) -> auto& { return plan.machine.replicas; });
}

void MachineSection::showPlan()
{
    const MachineModel& machine = plan().machine;
    memory_->setValue(machine.memory);
    select(*recompute_, static_cast<int>(plan().pipeline.recompute));
    select(*send_, static_cast<int>(machine.send));
    select(*transfers_, static_cast<int>(machine.transfers));
    sharedLinks_->setChecked(machine.sharedLinks);
    perNode_->setValue(machine.ranksPerNode);
    nodeLatency_->setValue(machine.between.latency);
    nodeBandwidth_->setValue(machine.between.bytesPerSecond);
    rankScale_->setValue(machine.rankScale);
    lateStart_->setValue(machine.lateStart);
    hostLatency_->setValue(machine.host.latency);
    hostBandwidth_->setValue(machine.host.bytesPerSecond);
    replicas_->setValue(machine.replicas);
    replicaLatency_->setValue(machine.replica.latency);
    replicaBandwidth_->setValue(machine.replica.bytesPerSecond);
    bucket_->setValue(machine.bucketBytes);
    barrier_->setChecked(machine.barrier);

    const bool nodes = machine.ranksPerNode > 0 && machine.ranksPerNode < plan().pipeline.ranks;
    for (QWidget* control : {static_cast<QWidget*>(nodeLatency_), static_cast<QWidget*>(nodeBandwidth_)})
        setCapability(*control, nodes, tr("All ranks lie on one node."));
    const engine::ScheduleFamily* family = engine::findFamily(plan().pipeline.schedule);
    const bool copies = machine.replicas > 1 || (family != nullptr && (family->name == "dualpipe" || family->name == "chimera"));
    for (QWidget* control : {static_cast<QWidget*>(replicaLatency_), static_cast<QWidget*>(replicaBandwidth_), static_cast<QWidget*>(bucket_)})
        setCapability(*control, copies, tr("There is one replica, and no second copy of the weights."));

    const auto ranks = static_cast<std::size_t>(plan().pipeline.ranks);
    const auto fits = [ranks](std::size_t length) { return length == 0 || length == ranks; };
    problem_->say(fits(machine.rankScale.size()) && fits(machine.lateStart.size())
                      ? QString()
                      : tr("Rank factors and late starts have one entry per rank: %1, or none.").arg(ranks));
}

} // namespace stagecraft::ui
