// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/pipeline_torch.h"

#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/batch_torch.h"
#include "engine/runtime/clip_norm.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/unit_streams.h"
#include "engine/schedule/milestones.h"
#include "engine/schedule/offload.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <system_error>

namespace stagecraft::runtime {

using namespace traces;

Pipeline::Pipeline(const Spec& spec, const Preparation& preparation)
    : run_(spec.plan.run), schedule_(spec.schedule), replica_(spec.replica), watch_(spec.watch), batches_(spec.batches), lengths_(sliceLengths(spec.plan)),
      host_(MemoryLedger::create(spec.clock)), fault_(spec.fault), only_(spec.only), others_(spec.others)
{
    const bool counts = run_.activations == engine::ActivationAccount::SavedTensors;
    if (counts || engine::hasOffload(schedule_)) installSavedTensorHooks();
    if (counts) inFlight_.resize(static_cast<std::size_t>(schedule_.ranks));
    for (int r = 0; r < schedule_.ranks; ++r) ledgers_.push_back(MemoryLedger::create(spec.clock, spec.plan.machine.memory));
    for (int r = 0; r < schedule_.ranks; ++r) {
        const c10::Device device = spec.devices.empty() ? c10::Device(c10::DeviceType::CPU) : spec.devices[static_cast<std::size_t>(r)];
        devices_.push_back(device.is_cpu() ? RankDevice() : RankDevice(device, spec.clock));
        if (!device.is_cpu() && run_.mode != engine::RunMode::Emulated && runsPairsSideBySide(schedule_, Rank{r})) devices_.back().addStream();
        sumDevices_.push_back(spec.plan.machine.replicas > 1 ? devices_.back().beside() : RankDevice());
        copyDevices_.push_back(engine::hasOffload(schedule_) ? devices_.back().beside() : RankDevice());
    }
    firstLayer_.assign(1, 0);
    for (const int layers : spec.partition) firstLayer_.push_back(firstLayer_.back() + layers);
    for (const Flow flow : schedule_.flows()) {
        for (std::size_t s = 0; s < stageCount(); ++s) {
            const Place place{flow, Stage{s}};
            const RankDevice& device = deviceOf(place);
            const RankDevice::Scope here = device.enter();
            const DeviceWatch::Wait wait(device.isCpu() ? nullptr : watch_, among(schedule_.rankOf(flow, Stage{s})), "building its stages");
            const StageModule::Spec part{spec.plan, firstLayer_[s], spec.partition[s], dutiesOf(schedule_, place), lengths_, spec.replica,
                                         replica_ * schedule_.microbatches + firstMicrobatch(flow), device.device(),
                                         device.hasTwo() ? std::function<void()>([&device] { device.letOtherWait(); }) : nullptr};
            stages_.push_back(!holds(place) ? nullptr : build(part, place, preparation));
        }
    }
    for (int r = 0; r < schedule_.ranks; ++r) {
        const RankDevice& device = devices_[static_cast<std::size_t>(r)];
        const DeviceWatch::Wait wait(device.isCpu() ? nullptr : watch_, among(Rank{r}), "building its stages");
        device.drain();
    }
    preparation.goOn();
}

std::unique_ptr<StageModule> Pipeline::build(const StageModule::Spec& part, const Place& place, const Preparation& preparation)
{
    try {
        return std::make_unique<StageModule>(part, &ledgerOf(place), preparation);
    } catch (const c10::OutOfMemoryError& error) {
        TORCH_CHECK_WITH(OutOfMemoryError, false, "stage ", place.stage.value, " on rank ", schedule_.rankOf(place.flow, place.stage).value, ": ",
                         error.what_without_backtrace());
    }
}

// The micro-batches that go up are the last ones of the batch. What is made of it for all is nobody's, and a rank has copies of its part:
// it holds no other's data.
void Pipeline::giveData(Step step)
{
    const int slices = schedule_.slices;
    for (const Flow flow : schedule_.flows()) {
        const std::ptrdiff_t first = firstMicrobatch(flow);
        const auto own = [&](const Place& place, auto make) {
            std::vector<at::Tensor> all;
            {
                const AllocationScope nobody({});
                all = make();
            }
            const RankDevice::Scope here = deviceOf(place).enter();
            const DeviceWatch::Wait wait(deviceOf(place).isCpu() ? nullptr : watch_, among(schedule_.rankOf(place.flow, place.stage)), "being given its data");
            const AllocationScope scope({.ledger = &ledgerOf(place)});
            std::vector<at::Tensor> whole(all.begin() + first, all.begin() + first + schedule_.units(flow) / slices);
            if (deviceOf(place).isCpu()) whole = ofTheirOwn(std::move(whole));
            else for (at::Tensor& each : whole) each = each.to(deviceOf(place).device());
            return lengths_.empty() ? cutRows(whole, slices) : cutSequences(whole, lengths_);
        };
        const Place start{flow, Stage{0}};
        const Place end{flow, Stage{stageCount() - 1}};
        if (holds(start)) {
            stage(start).giveInputs({}); // the old ones go before the new ones come
            stage(start).giveInputs(own(start, [&] { return batches_.inputs(step, replica_); }));
        }
        if (!holds(end)) continue;
        stage(end).giveTargets({});
        stage(end).giveTargets(own(end, [&] { return batches_.targets(step, replica_); }));
    }
}

void Pipeline::beginStepOnDevice(Rank rank)
{
    devices_[index(rank)].beginStep();
    sumDevices_[index(rank)].countFrom(devices_[index(rank)]);
    copyDevices_[index(rank)].countFrom(devices_[index(rank)]);
}

double Pipeline::stepLoss()
{
    double sum = 0;
    for (const Flow flow : schedule_.flows()) {
        const Place last{flow, Stage{stageCount() - 1}};
        for (const double loss : holds(last) ? stage(last).losses() : others_->losses(last, ownerOf(last))) sum += loss;
    }
    return sum;
}

std::vector<std::int64_t> Pipeline::outputShape()
{
    std::vector<std::int64_t> whole;
    for (const Flow flow : schedule_.flows()) {
        const Place last{flow, Stage{stageCount() - 1}};
        const std::vector<std::int64_t> shape = holds(last) ? stage(last).outputShape() : others_->outputShape(last, ownerOf(last));
        if (whole.empty()) whole = shape;
        else if (!shape.empty()) whole.front() += shape.front();
    }
    return whole;
}

double stepLoss(const Replicas& replicas)
{
    double sum = 0;
    for (const auto& each : replicas) sum += each->stepLoss();
    return sum;
}

std::vector<std::int64_t> outputShape(const Replicas& replicas)
{
    std::vector<std::int64_t> shape = replicas.front()->outputShape();
    if (!shape.empty()) shape.front() *= static_cast<std::int64_t>(replicas.size());
    return shape;
}

void Pipeline::keepForCheck()
{
    for (const Place& place : places(schedule_)) {
        if (!holds(place)) continue;
        stage(place).keepGradients(!schedule_.inference());
        stage(place).keepOutputs(schedule_.inference());
    }
}

std::vector<at::Tensor> Pipeline::weights(const Place& place)
{
    return holds(place) ? stage(place).parameters() : others_->tensors(place, ownerOf(place));
}

std::vector<at::Tensor> Pipeline::takeGradients(const Place& place)
{
    if (!holds(place)) return others_->tensors(place, ownerOf(place));
    stage(place).keepGradients(false);
    return stage(place).takeGradients();
}

std::vector<at::Tensor> Pipeline::takeOutputs(const Place& place)
{
    if (!holds(place)) return others_->tensors(place, ownerOf(place));
    stage(place).keepOutputs(false);
    return stage(place).takeOutputs();
}

std::vector<at::Tensor> Pipeline::sharedGradients(const Place& own, const Place& other)
{
    std::vector<at::Tensor> gradients = stage(own).gradients();
    if (own.stage == other.stage) return gradients;
    return {std::move(gradients[stage(own).tied()])};
}

// The same bits for both: adding two is commutative.
void Pipeline::addShared(const Place& own, const Place& other, const std::vector<at::Tensor>& ofTheOther)
{
    const RankDevice::Scope here = deviceOf(own).enter();
    const AllocationScope scope({.ledger = &ledgerOf(own), .memory = MemoryClass::Gradients});
    const at::NoGradGuard noGrad;
    std::vector<at::Tensor> gradients = stage(own).gradients();
    const std::size_t first = own.stage == other.stage ? 0 : stage(own).tied();
    for (std::size_t i = 0; i < ofTheOther.size(); ++i) gradients[first + i] = gradients[first + i] + ofTheOther[i].to(gradients[first + i].device());
    stage(own).setGradients(std::move(gradients));
}

void Pipeline::sumBoth(const Place& one, const Place& other)
{
    const std::vector<at::Tensor> ofOne = sharedGradients(one, other);
    addShared(one, other, sharedGradients(other, one));
    addShared(other, one, ofOne);
}

at::Tensor Pipeline::squaredNorms(Rank rank)
{
    at::Tensor all = at::zeros({firstLayer_.back()}, at::kDouble);
    const RankDevice::Scope here = devices_[index(rank)].enter();
    for (const Place& place : placesOf(schedule_, rank)) {
        const AllocationScope scope({.ledger = &ledgerOf(place)});
        stage(place).settleGradients();
        if (place.flow == Flow::Up) continue; // both copies have the same
        const std::vector<double> own = stage(place).squaredNorms();
        std::copy(own.begin(), own.end(), all.mutable_data_ptr<double>() + firstLayer_[index(place.stage)]);
    }
    return all;
}

void Pipeline::clipGradients(Rank rank, const at::Tensor& all)
{
    const std::vector<double> squares(all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel());
    if (const int layer = firstDiverged(squares); layer >= 0) throw std::domain_error(divergedNorm(layer, run_.learningRate));
    const double factor = clipFactor(squares, run_.clipNorm);
    const RankDevice::Scope here = devices_[index(rank)].enter();
    for (const Place& place : placesOf(schedule_, rank)) stage(place).shrinkGradients(factor);
}

const InjectedFault* Pipeline::faultOf(const Work& work, Step step) const
{
    const bool hit = fault_ && fault_->action == work.kind && fault_->stage == work.stage &&
                     fault_->microbatch == work.microbatch && fault_->step == step;
    return hit ? &*fault_ : nullptr;
}

void Pipeline::meetFaultAfter(Step step) const
{
    if (fault_ && fault_->kind == InjectedFault::Kind::ExceptionAfterStep && fault_->step == step)
        throw std::runtime_error("exception injected");
}

void Pipeline::meetFaultOfThread(Rank rank, InjectedFault::Kind which) const
{
    if (fault_ && fault_->kind == which && schedule_.stageToRank[index(fault_->stage)] == rank)
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

namespace {

// What a forward allocates and keeps is what its backward needs. A backward's own blocks are short-lived, but for the gradients, which
// get their class at its end.
MemoryClass classOf(ActionKind kind)
{
    switch (kind) {
    case ActionKind::Forward: return MemoryClass::Activations;
    case ActionKind::Recompute: return MemoryClass::Recompute;
    default: return MemoryClass::Other;
    }
}

} // namespace

at::Tensor Pipeline::execute(const Work& work, Step step, at::Tensor input)
{
    using Kind = InjectedFault::Kind;
    const InjectedFault* fault = faultOf(work, step);
    const Place place{work.flow, work.stage};
    const RankDevice::Scope here = deviceOf(place).enter();
    const AllocationScope scope({.ledger = &ledgerOf(place),
                                 .memory = classOf(work.kind),
                                 .failIn = fault && fault->kind == Kind::AllocationFailure ? fault->allocation : 0});
    if (fault && fault->kind == Kind::Exception) throw std::runtime_error("exception injected");

    StageModule& stage = this->stage(place);
    const int unit = work.microbatch.value;
    const auto spoil = [&] {
        if (!fault || fault->kind != Kind::WrongGradient || stage.parameters().empty()) return;
        const at::NoGradGuard noGrad;
        stage.parameters().front().mutable_grad().add_(1);
    };
    switch (work.kind) {
    case ActionKind::Forward: {
        at::Tensor output = stage.forward(unit, std::move(input), step);
        // at once: whatever comes after it would be none either
        if (deviceOf(place).isCpu()) expectFinite(stage.losses()[index(work.microbatch)], step);
        return output;
    }
    case ActionKind::Recompute: stage.recompute(unit, step); return {};
    case ActionKind::Backward: {
        at::Tensor result = stage.backward(unit, std::move(input));
        spoil();
        stage.endGradients(unit);
        return result;
    }
    case ActionKind::InputGrad: return stage.inputGrad(unit, std::move(input));
    case ActionKind::WeightGrad:
        stage.weightGrad(unit);
        spoil();
        stage.endGradients(unit);
        return {};
    case ActionKind::Optimizer: stage.optimize(run_.rateOf(step.value)); return {};
    case ActionKind::Unshard: stage.takeRoomForWeights(); return {};
    case ActionKind::Reshard: stage.giveUpWeights(); return {};
    case ActionKind::ReduceGrad: return {}; // the replicas' affair
    default: throw std::logic_error("the engine has no way to execute " + std::string(kindName(work.kind)));
    }
}

void Pipeline::expectFinite(double loss, Step step) const
{
    if (!std::isfinite(loss)) throw std::domain_error(divergedLoss(loss, step > Step{0} || schedule_.asynchronous(), run_.learningRate));
}

void Pipeline::readLosses(Rank rank, Step step, Work& work)
{
    const RankDevice::Scope here = devices_[index(rank)].enter();
    for (const Place& place : placesOf(schedule_, rank)) {
        if (index(place.stage) + 1 != stageCount()) continue;
        stage(place).readLosses();
        const std::vector<double>& losses = stage(place).losses();
        for (std::size_t unit = 0; unit < losses.size(); ++unit) {
            work = makeAction(ActionKind::Forward, place.stage, MicroBatch{unit}, place.flow).work;
            expectFinite(losses[unit], step);
        }
    }
}

void Pipeline::copy(const Work& work)
{
    const Rank own = schedule_.rankOf(work.flow, work.stage);
    MemoryLedger* to = &ledger(own);
    c10::Device device = devices_[index(own)].device();
    if (work.kind == ActionKind::Offload && schedule_.offloadTo == engine::OffloadTo::Host) {
        to = host_.get();
        device = c10::DeviceType::CPU;
    } else if (work.kind == ActionKind::Offload) {
        const Rank partner = schedule_.partnerOf(own);
        to = &ledger(partner);
        device = devices_[index(partner)].device();
    }
    RankDevice& copies = copyDevice(own);
    const RankDevice::Scope here = copies.enter();
    savedOf(work).copyTo({.ledger = to, .memory = MemoryClass::Activations},
                         [&](const at::DataPtr& from, std::size_t bytes) { return copies.copied(from, bytes, device); });
}

void Pipeline::countActivations(Rank rank, const Action& action)
{
    if (inFlight_.empty()) return;
    InFlight& rankHolds = inFlight_[index(rank)];
    Bytes released = 0; // of a pair, after the forward has added its own
    engine::forEachWork(action, [&](const Work& work) {
        if (work.microbatch == kNoMicroBatch || work.kind == ActionKind::Optimizer) return;
        const Bytes change = stage({work.flow, work.stage}).takeKeptChange(work.microbatch.value);
        (change < 0 ? released : rankHolds.now) += change;
    });
    rankHolds.most = std::max(rankHolds.most, rankHolds.now);
    rankHolds.now += released;
}

std::vector<Bytes> Pipeline::peakActivations() const
{
    std::vector<Bytes> peaks;
    for (const InFlight& rank : inFlight_) peaks.push_back(rank.most);
    return peaks;
}

std::vector<engine::StageActivations> Pipeline::stageActivations()
{
    std::vector<engine::StageActivations> stages(inFlight_.empty() ? 0 : stageCount());
    for (std::size_t s = 0; s < stages.size(); ++s)
        for (const Flow flow : schedule_.flows()) {
            const engine::StageActivations copy = stage({flow, Stage{s}}).activations();
            stages[s] = {std::max(stages[s].saved, copy.saved), std::max(stages[s].forWeights, copy.forWeights),
                         std::max(stages[s].booked, copy.booked)};
        }
    return stages;
}

namespace {

std::string reasonOf(const std::exception_ptr& error)
{
    try {
        std::rethrow_exception(error);
    } catch (const c10::OutOfMemoryError& e) {
        return std::string(e.what_without_backtrace()) +
               ". Take smaller micro-batches, more stages, or a schedule that keeps fewer of them.";
    } catch (const c10::Error& e) {
        return e.what_without_backtrace();
    } catch (const std::bad_alloc&) {
        return "not enough memory. Take smaller micro-batches, more stages, or a schedule that keeps fewer of them.";
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "an exception of unknown type";
    }
}

} // namespace

void expectRoom(MemoryLedger& ledger)
{
    const traces::Bytes over = ledger.takeOverdraft();
    TORCH_CHECK_WITH(OutOfMemoryError, over == 0, ledger.overdrawn(over));
}

engine::FailureMessage describeFailure(const Work& work, Step step, Rank rank, const std::exception_ptr& error)
{
    return actionFailure(work, step, rank, reasonOf(error));
}

engine::FailureMessage describeFailure(std::string_view doing, const std::exception_ptr& error)
{
    engine::FailureMessage failure;
    failure.text = std::string(doing) + " failed: " + reasonOf(error);
    return failure;
}

} // namespace stagecraft::runtime
