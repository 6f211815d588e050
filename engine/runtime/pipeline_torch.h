// SPDX-License-Identifier: Apache-2.0
//
// The stages of a run, their data and their ledgers: everything that both ways of running share. Private to the runtime.
#pragma once

#include "engine/runtime/data_torch.h"
#include "engine/runtime/device_watch.h"
#include "engine/runtime/local_session.h"
#include "engine/runtime/preparation.h"
#include "engine/runtime/rank_device_torch.h"
#include "engine/runtime/stage_torch.h"
#include "engine/session/session_message.h"

#include <exception>
#include <memory>
#include <vector>

namespace stagecraft::runtime {

// The stages that other processes hold, as far as rank 0 asks for them between two steps. Owners are numbered over all replicas.
class OtherStages {
public:
    virtual ~OtherStages() = default;
    virtual std::vector<double> losses(const Place& place, traces::Rank owner) = 0;
    virtual std::vector<std::int64_t> outputShape(const Place& place, traces::Rank owner) = 0;
    // What the check asks for next: weights, gradients or outputs.
    virtual std::vector<at::Tensor> tensors(const Place& place, traces::Rank owner) = 0;
};

class Pipeline {
public:
    static constexpr traces::Rank kNoRank{-1}; // whose all others have
    struct Spec {
        const engine::Plan& plan;
        const engine::Schedule& schedule;
        const engine::Partition& partition;
        const BatchSource& batches;
        const Clock& clock;
        std::optional<InjectedFault> fault;
        int replica = 0; // of those of the plan's machine
        std::optional<traces::Rank> only = {}; // of the replica, whose stages are in this process, or kNoRank; none: all are
        OtherStages* others = nullptr;         // not owned
        std::vector<c10::Device> devices = {}; // of each rank; none: all compute on the CPU
        DeviceWatch* watch = nullptr;          // not owned; where some rank is on a GPU
    };
    Pipeline(const Spec& spec, const Preparation& preparation);

    // Before a step: the first one, and each whose batch is another one.
    void giveData(traces::Step step);

    // Executes one action on the calling thread: F, B, I, W, RECOMPUTE or the optimizer of a stage, and of UNSHARD and RESHARD the part
    // that needs no other replica. `input` is what arrived from another stage, the result what goes to another one; undefined where there
    // is none. Throws what LibTorch throws.
    at::Tensor execute(const traces::Work& work, traces::Step step, at::Tensor input);

    // OFFLOAD and RELOAD of a unit, in two parts: the copy, after which both are held, and then what was copied is let go. On whatever
    // thread, but not while one executes an action of the same unit. A GPU copies later, on the stream for that: what was copied must be
    // there until then.
    [[nodiscard]] traces::Bytes moved(const traces::Work& work) { return savedOf(work).movableBytes(); }
    void copy(const traces::Work& work);
    void letGo(const traces::Work& work) { savedOf(work).letGo(); }
    // What came back on a GPU is to be held until the backward is over: its memory is the stream's that copied.
    [[nodiscard]] std::vector<c10::Storage> cameBack(const traces::Work& work) { return savedOf(work).storages(); }

    // The rank is through with an action: counts what it keeps for backwards from here on, where the run tells that.
    void countActivations(traces::Rank rank, const traces::Action& action);
    // The most that each rank kept, and what each stage keeps of a micro-batch; empty where it was not counted.
    [[nodiscard]] std::vector<traces::Bytes> peakActivations() const;
    [[nodiscard]] std::vector<engine::StageActivations> stageActivations();

    // Throws where a fault asks for that after the step, or when the thread of a rank is to be started.
    void meetFaultAfter(traces::Step step) const;
    void meetFaultOfThread(traces::Rank rank, InjectedFault::Kind which = InjectedFault::Kind::NoThread) const;

    // Gradients of weights of which there are two copies: those of all where the other is the same stage, those of the table where it is
    // the stage at the other end. The sum takes the place of the own ones.
    [[nodiscard]] std::vector<at::Tensor> sharedGradients(const Place& own, const Place& other);
    void addShared(const Place& own, const Place& other, const std::vector<at::Tensor>& ofTheOther);
    void sumBoth(const Place& one, const Place& other); // of a rank that holds both

    // Settles the gradients of the rank's stages and tells the squares of their norms by layer of the model: 0 for layers of others, and
    // for the second copy of a layer.
    [[nodiscard]] at::Tensor squaredNorms(traces::Rank rank);
    // With the squares of all layers: shrinks the gradients of the rank's stages to the norm that the plan allows. Throws
    // std::domain_error where that is no finite number.
    void clipGradients(traces::Rank rank, const at::Tensor& squares);

    [[nodiscard]] RankDevice& device(traces::Rank rank) { return devices_[traces::index(rank)]; }
    // Of its GPU the stream for what the rank does with its like in other replicas, and the one for OFFLOAD and RELOAD; where there is
    // none of that, nobody's.
    [[nodiscard]] RankDevice& sumDevice(traces::Rank rank) { return sumDevices_[traces::index(rank)]; }
    [[nodiscard]] RankDevice& copyDevice(traces::Rank rank) { return copyDevices_[traces::index(rank)]; }
    void beginStepOnDevice(traces::Rank rank); // on the rank's thread, when nothing of the rank is under way
    [[nodiscard]] const RankDevice& deviceOf(const Place& place) const { return devices_[traces::index(schedule_.rankOf(place.flow, place.stage))]; }
    // Of a stage that another process holds: where this one computes.
    [[nodiscard]] c10::Device computesOn(const Place& place) const { return holds(place) ? deviceOf(place).device() : devices_[traces::index(*only_)].device(); }
    // Of a rank on a GPU, whose device is through with the step: throws std::domain_error where a loss of its last stage is no finite
    // number, and names the action.
    void readLosses(traces::Rank rank, traces::Step step, traces::Work& work);

    [[nodiscard]] MemoryLedger& ledger(traces::Rank rank) { return *ledgers_[traces::index(rank)]; }
    [[nodiscard]] StageModule& stage(const Place& place)
    {
        return *stages_[traces::index(place.stage) + (place.flow == traces::Flow::Up ? stageCount() : 0)];
    }
    [[nodiscard]] traces::Rank ownerOf(const Place& place) const // of all replicas
    {
        return traces::Rank{replica_ * schedule_.ranks + schedule_.rankOf(place.flow, place.stage).value};
    }
    [[nodiscard]] bool holds(const Place& place) const { return !only_ || schedule_.rankOf(place.flow, place.stage) == *only_; }
    [[nodiscard]] const engine::Schedule& schedule() const { return schedule_; }

    // For the check, wherever the stage is: from now on the stages here keep what it compares, gradients or outputs; and what they kept.
    void keepForCheck();
    [[nodiscard]] std::vector<at::Tensor> weights(const Place& place);
    [[nodiscard]] std::vector<at::Tensor> takeGradients(const Place& place);
    [[nodiscard]] std::vector<at::Tensor> takeOutputs(const Place& place); // of a last stage, by unit

    // Of the last stages: one for each direction.
    [[nodiscard]] double stepLoss();
    [[nodiscard]] std::vector<std::int64_t> outputShape();

private:
    [[nodiscard]] const InjectedFault* faultOf(const traces::Work& work, traces::Step step) const;
    // Of a direction, among those of this replica.
    [[nodiscard]] int firstMicrobatch(traces::Flow flow) const { return flow == traces::Flow::Up ? schedule_.units(traces::Flow::Down) / schedule_.slices : 0; }
    [[nodiscard]] std::size_t stageCount() const { return schedule_.stageToRank.size(); }
    [[nodiscard]] SavedTensors& savedOf(const traces::Work& work) { return stage({work.flow, work.stage}).saved(work.microbatch.value); }
    [[nodiscard]] std::unique_ptr<StageModule> build(const StageModule::Spec& part, const Place& place, const Preparation& preparation);
    void expectFinite(double loss, traces::Step step) const;
    [[nodiscard]] MemoryLedger& ledgerOf(const Place& place) { return ledger(schedule_.rankOf(place.flow, place.stage)); }

    const engine::RunSpec& run_;
    const engine::Schedule& schedule_;
    const int replica_;
    std::vector<int> firstLayer_; // of each stage, and behind the last the number of all
    [[nodiscard]] Rank among(Rank rank) const { return Rank{replica_ * schedule_.ranks + rank.value}; } // of all replicas
    DeviceWatch* const watch_;
    const BatchSource& batches_;
    std::vector<int> lengths_; // of slices; empty: sequences are whole
    std::vector<RankDevice> devices_;   // by rank
    std::vector<RankDevice> sumDevices_; // the same
    std::vector<RankDevice> copyDevices_; // the same
    std::vector<LedgerHandle> ledgers_; // before the stages: their blocks are booked there
    LedgerHandle host_;                 // what OFFLOAD took off the ranks
    struct InFlight {
        traces::Bytes now = 0;
        traces::Bytes most = 0;
    };
    std::vector<InFlight> inFlight_; // by rank; empty where nobody asks
    std::vector<std::unique_ptr<StageModule>> stages_; // of the direction down, then up; null where another process holds it
    std::optional<InjectedFault> fault_;
    std::optional<traces::Rank> only_;
    OtherStages* others_;
};

// Those of a run, replica by replica; each holds all weights and trains them on its own part of the batch.
using Replicas = std::vector<std::unique_ptr<Pipeline>>;
[[nodiscard]] double stepLoss(const Replicas& replicas);
[[nodiscard]] std::vector<std::int64_t> outputShape(const Replicas& replicas);

// Throws c10::OutOfMemoryError where the rank has come to hold more than it may: what a GPU's allocator gave, which nobody could refuse.
void expectRoom(MemoryLedger& ledger);

// What a person reads when an action has thrown; to be called in the handler.
engine::FailureMessage describeFailure(const traces::Work& work, traces::Step step, traces::Rank rank,
                                       const std::exception_ptr& error);
// The same for what happens outside of actions ("building the stages").
engine::FailureMessage describeFailure(std::string_view doing, const std::exception_ptr& error);

} // namespace stagecraft::runtime
