// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/processes_torch.h"

#include "engine/runtime/nccl_run_torch.h"
#include "engine/runtime/process_handoff_torch.h"
#include "engine/runtime/process_sums_torch.h"
#include "engine/runtime/rank_worker_torch.h"
#include "engine/runtime/run_messages.h"
#include "engine/runtime/tensor_mail_torch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>

namespace stagecraft::runtime {

using namespace traces;
using Json = nlohmann::json;

namespace {

// Numbers travel as they are: a loss may be none.
std::span<const std::byte> bytesOf(const std::vector<double>& numbers) { return std::as_bytes(std::span(numbers)); }

std::vector<double> numbersOf(const std::string& bytes)
{
    std::vector<double> numbers(bytes.size() / sizeof(double));
    std::ranges::copy(std::as_bytes(std::span(bytes)), std::as_writable_bytes(std::span(numbers)).begin()); // none are copied as well
    return numbers;
}

Place lastPlace(const engine::Schedule& schedule, Flow flow) { return {flow, Stage{schedule.stages() - 1}}; }

class ProcessMeeting final : public StepMeeting {
public:
    ProcessMeeting(const Execution& run, ProcessRun& all, ReportedStages& others, double peakFlops)
        : run_(run), all_(all), others_(others), peakFlops_(peakFlops)
    {
    }

    bool meet(Rank rank, int step, TimeNs end) override
    {
        const bool goOn = rank == Rank{0} ? lead(rank, step, end) : follow(rank, step, end);
        office().look(); // what was sent in the last step has arrived: its memory goes back
        return goOn;
    }
    void cancel() override {} // who waits looks at the run's control

private:
    PostOffice& office() { return all_.group().office(); }

    bool lead(Rank rank, int step, TimeNs end)
    {
        run_.control.rest(rank);
        for (int r = 1; r < all_.group().size(); ++r) {
            std::optional<Mail> report;
            office().waitUntil([&] { return (report = office().find(MailKind::Report, r)).has_value() || all_.ending(); });
            if (!report) return false;
            others_.take(r, *report);
        }
        const bool last = step == run_.plan.run.steps;
        std::vector<double> loss;
        if (step > run_.firstStep) {
            loss.push_back(run_.keeper.loss());
            run_.keeper.finish(Step{step - 1}, {stepBegin_, end});
            if (!last) run_.keeper.prepare(Step{step}, Preparation(run_.control)); // the first is prepared before the run
        }
        if (step == run_.firstStep || last) all_.alignClocks();
        if (!run_.control.enter(rank)) return false; // a pause here is before the step
        stepBegin_ = run_.clock.now();
        const auto kept = std::make_shared<const std::vector<double>>(std::move(loss));
        for (int r = 1; r < all_.group().size(); ++r) office().send(r, MailKind::Go, "", {bytesOf(*kept)}, kept);
        return true;
    }

    bool follow(Rank rank, int step, TimeNs end)
    {
        report(Rank{rank.value % run_.schedule.ranks}, step);
        run_.control.rest(rank);
        std::optional<Mail> go;
        office().waitUntil([&] { return (go = office().find(MailKind::Go, 0)).has_value() || all_.ending(); });
        if (!go) return false;
        const std::vector<double> loss = numbersOf(go->bodies.front());
        if (!loss.empty()) run_.recorder.post(StepRecord{{Step{step - 1}, {stepBegin_, end}, loss.front()}});
        if (step < run_.plan.run.steps && !run_.keeper.giveData(Step{step})) return false;
        stepBegin_ = run_.clock.now();
        return true;
    }

    // Of the step that is over, and for the check of the next one. Weights are the same in all replicas: those of the first count.
    void report(Rank rank, int step)
    {
        Json shapes = Json::array();
        std::vector<std::span<const std::byte>> bodies;
        const auto losses = std::make_shared<std::vector<std::vector<double>>>();
        for (const Flow flow : run_.schedule.flows()) {
            const Place place = lastPlace(run_.schedule, flow);
            if (step == run_.firstStep || !run_.pipeline.holds(place)) continue;
            shapes.push_back({{"flow", flow}, {"stage", place.stage.value}, {"shape", run_.pipeline.stage(place).outputShape()}});
            losses->push_back(run_.pipeline.stage(place).losses());
        }
        for (const std::vector<double>& each : *losses) bodies.push_back(bytesOf(each));
        const Json text{{"last", shapes}, {"peak", step == run_.firstStep ? peakFlops_ : 0}};
        office().send(0, MailKind::Report, text.dump(), bodies, losses);

        const bool inference = run_.schedule.inference();
        const bool asynchronous = run_.schedule.asynchronous();
        if (step > run_.firstStep && run_.keeper.checks(Step{step - 1}))
            for (const Place& place : placesOf(run_.schedule, rank)) {
                if (asynchronous) sendChecked(run_.pipeline.weights(place));
                else if (!inference) sendChecked(run_.pipeline.takeGradients(place));
                else if (place == lastPlace(run_.schedule, place.flow)) sendChecked(run_.pipeline.takeOutputs(place));
            }
        if (run_.replica == 0 && step > run_.firstStep && run_.keeper.keeps(Step{step - 1}))
            for (const Place& place : placesOf(run_.schedule, rank))
                if (place.flow == run_.schedule.flows().front()) sendState(run_.pipeline.stage(place));
        if (step == run_.plan.run.steps || !run_.keeper.checks(Step{step})) return;
        if (run_.replica == 0 && step > run_.firstStep && !asynchronous)
            for (const Place& place : placesOf(run_.schedule, rank))
                if (place.flow == run_.schedule.flows().front()) sendChecked(run_.pipeline.weights(place));
        if (!asynchronous) run_.pipeline.keepForCheck();
    }

    void sendChecked(const std::vector<at::Tensor>& tensors)
    {
        TensorMail mail = packTensors(tensors);
        office().send(0, MailKind::Checked, mail.text, mail.bodies, std::move(mail.keep));
    }

    // Nothing changes them before rank 0 has them all: it sends no Go before.
    void sendState(StageModule& stage)
    {
        const StageState state = stateOf(stage);
        Json names{{"names", state.names}, {"optimizer", Json::array()}};
        std::vector<at::Tensor> tensors = state.weights;
        for (const StageState::OfOptimizer& each : state.optimizer) {
            names["optimizer"].push_back(each.name);
            tensors.insert(tensors.end(), each.ofParameters.begin(), each.ofParameters.end());
        }
        TensorMail mail = packTensors(tensors);
        office().send(0, MailKind::State, names.dump() + '\n' + mail.text, mail.bodies, std::move(mail.keep));
    }

    const Execution& run_;
    ProcessRun& all_;
    ReportedStages& others_;
    const double peakFlops_;
    TimeNs stepBegin_ = 0;
};

} // namespace

void ReportedStages::take(int rank, const Mail& report)
{
    std::size_t next = 0;
    const Json text = Json::parse(report.text);
    peakFlops_ += text.at("peak").get<double>();
    for (const Json& each : text.at("last")) {
        const Place place{each.at("flow").get<Flow>(), Stage{each.at("stage").get<int>()}};
        shapes_[{Rank{rank}, place}] = each.at("shape").get<std::vector<std::int64_t>>();
        losses_[{Rank{rank}, place}] = numbersOf(report.bodies[next++]);
    }
}

namespace {

std::vector<at::Tensor> tensorsIn(std::string_view text, const std::vector<std::string>& bodies)
{
    std::vector<at::Tensor> tensors = tensorsLike(text);
    const std::vector<std::span<std::byte>> room = roomOf(tensors);
    for (std::size_t i = 0; i < room.size(); ++i) std::ranges::copy(std::as_bytes(std::span(bodies[i])), room[i].begin());
    return tensors;
}

} // namespace

Mail ReportedStages::await(MailKind kind, Rank from)
{
    PostOffice& office = all_.group().office();
    std::optional<Mail> mail;
    office.waitUntil([&] { return (mail = office.find(kind, from.value)).has_value() || all_.ending(); });
    if (!mail) throw PreparationStopped{};
    return std::move(*mail);
}

std::vector<at::Tensor> ReportedStages::tensors(const Place&, Rank owner)
{
    const Mail mail = await(MailKind::Checked, owner);
    return tensorsIn(mail.text, mail.bodies);
}

StageState ReportedStages::state(const Place&, Rank owner)
{
    const Mail mail = await(MailKind::State, owner);
    const std::size_t end = mail.text.find('\n');
    const Json names = Json::parse(mail.text.substr(0, end));
    std::vector<at::Tensor> tensors = tensorsIn(std::string_view(mail.text).substr(end + 1), mail.bodies);
    StageState state{names.at("names").get<std::vector<std::string>>(), {}, {}};
    auto next = std::make_move_iterator(tensors.begin());
    const auto take = [&] {
        const auto first = next;
        next += static_cast<std::ptrdiff_t>(state.names.size());
        return std::vector<at::Tensor>(first, next);
    };
    state.weights = take();
    for (const Json& name : names.at("optimizer")) state.optimizer.push_back({name.get<std::string>(), take()});
    return state;
}

namespace {

// On the rank's thread, which alone issues to its communicators.
void meetPeers(const Execution& run, NcclRun& nccl)
{
    try {
        nccl.meetPeers();
    } catch (...) { // the rank finds the run at its end
        if (!run.control.ending()) run.control.fail(describeFailure("connecting the GPUs of the ranks", std::current_exception()));
    }
}

// The rank's thread, and what sums beside it, until both are through.
class ProcessThreads {
public:
    ProcessThreads(const Execution& run, ProcessRun& all, const HandoffPlace& place, NcclRun* nccl) : run_(run), own_(all.rank()), nccl_(nccl)
    {
        if (run.sums != nullptr && nccl == nullptr) byMail_.emplace(run, all, place, own_);
        const int ofRank = run.sums != nullptr ? 2 : 1; // as the control counts them
        const int here = byMail_ ? 2 : 1;
        for (int others = ofRank * run.plan.machine.replicas * run.schedule.ranks - here; others > 0; --others) run.control.leave();
    }

    void run(RankLinks links)
    {
        links.sums = byMail_ ? &*byMail_ : nccl_ != nullptr ? nccl_->sums() : nullptr;
        if (!startOne("the sums of rank ", [&] { if (byMail_) byMail_->start(); }) && byMail_) run_.control.leave();
        const bool started = startOne("rank ", [&] {
            const Rank rank{own_.value % run_.schedule.ranks};
            run_.pipeline.meetFaultOfThread(rank);
            thread_ = std::jthread([this, links, rank] {
                if (nccl_ != nullptr) meetPeers(run_, *nccl_);
                runRank(run_, links, rank);
                if (byMail_) byMail_->stop();
            });
            pthread_setname_np(thread_.native_handle(), ("rank " + std::to_string(own_.value)).c_str());
        });
        if (!started) {
            run_.control.leave();
            if (byMail_) byMail_->stop();
        }
        run_.control.superviseRanks();
        if (thread_.joinable()) thread_.join();
    }

private:
    template <class Start>
    bool startOne(const std::string& whom, Start&& start)
    {
        if (run_.control.ending()) return false;
        try {
            start();
            return true;
        } catch (const std::system_error& error) {
            run_.control.fail(threadFailure(whom + std::to_string(own_.value), error.code().message()));
            return false;
        }
    }

    const Execution& run_;
    const Rank own_; // of all replicas
    NcclRun* nccl_;
    std::optional<ProcessSums> byMail_;
    std::jthread thread_; // last: it uses the others
};

} // namespace

void runAsProcess(const Execution& run, ProcessRun& all, ReportedStages& others, const ProcessPart& part)
{
    std::optional<DeviceWatch::Wait> ending; // first, so over last
    const engine::Schedule& schedule = run.schedule;
    const Rank own{all.rank() % schedule.ranks}; // of the replica
    const int flows = static_cast<int>(schedule.flows().size());
    const HandoffPlace here{run.control, run.pipeline.ledger(own), run.pipeline.device(own), run.clock};
    const auto ownerOf = [&](const BoxAddress& box) { return run.among(schedule.rankOf(box.flow, box.receiver)); };
    ProcessHandoff<std::vector<at::Tensor>> gradients(all, {schedule.stages(), 1, flows}, here, MailKind::Gradients, ownerOf);
    ProcessHandoff<at::Tensor> norms(all, {schedule.ranks, 1, 1}, here, MailKind::Norms, [&](const BoxAddress& box) { return run.among(Rank{box.receiver.value}); });
    ProcessMeeting meeting(run, all, others, part.peakFlops);
    const std::unique_ptr<NcclRun> nccl = part.nccl != nullptr ? connectNccl(run, all, here, *part.nccl) : nullptr;
    std::optional<ProcessHandoff<Boundary>> byMail;
    if (!nccl) byMail.emplace(all, HandoffSize{schedule.stages(), mostUnits(schedule), flows}, here, MailKind::Boundary, ownerOf);
    Handoff<Boundary>& handoff = nccl ? nccl->handoff() : *byMail;
    ProcessThreads(run, all, here, nccl.get()).run({handoff, gradients, norms, meeting});
    ending.emplace(here.device.isCpu() ? nullptr : run.watch, run.among(own), DeviceWatch::OfOthers{"ending what it hands over"});
    if (!nccl || run.control.ending()) return;
    if (const Expected<void> finished = nccl->finish(); !finished.ok() && !run.control.ending())
        run.recorder.post(NoteRecord{"after the last step: " + finished.error().message});
}

} // namespace stagecraft::runtime
