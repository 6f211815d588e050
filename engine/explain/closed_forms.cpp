// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/closed_forms.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace stagecraft::engine {
namespace {

// The times are sums of rounded nanoseconds.
bool same(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

// One schedule's forms in the making.
class Forms {
public:
    Forms(const PipelineSpec& pipeline, const std::optional<FormTimes>& times)
        : times_(times.value_or(FormTimes{})), timed_(times.has_value()), p_(pipeline.ranks), v_(pipeline.chunks), m_(pipeline.microbatches),
          k_(pipeline.slices), group_(pipeline.group), concatenation_(pipeline.concatenation),
          recomputes_(pipeline.recompute == Recompute::Full && pipeline.schedule != "forward-only") // which has nothing to compute again
    {
    }

    ClosedForms of(std::string_view schedule)
    {
        if (schedule == "naive") naive();
        else if (schedule == "gpipe" || schedule == "gpipe-lifo") gpipe();
        else if (schedule == "1f1b") oneFOneB();
        else if (schedule == "eager-1f1b") eager();
        else if (schedule == "interleaved") interleaved();
        else if (schedule == "looped-bfs") loopedBfs();
        else if (schedule == "zb-h1") zbH1();
        else if (schedule == "zb-h2") zbH2();
        else if (schedule == "interleaved-zb") interleavedZb();
        else if (schedule == "zb-v") zbV();
        else if (schedule == "v-half") half();
        else if (schedule == "v-min") least();
        else if (schedule == "dualpipe") dualPipe();
        else if (schedule == "dualpipe-v") dualPipeV();
        else if (schedule == "chimera") chimera();
        else if (schedule == "seq1f1b") seq1F1B();
        else if (schedule == "forward-only") forwardOnly();
        return std::move(forms_);
    }

private:
    [[nodiscard]] double both() const { return times_.forward + times_.backward; }
    [[nodiscard]] bool free() const { return times_.transfer == 0; }
    // Weight gradients fill gaps only while they are no longer than what they wait beside.
    [[nodiscard]] bool splits() const
    {
        return timed_ && times_.weightGrad <= std::min(times_.forward, times_.inputGrad);
    }
    [[nodiscard]] bool unitTimes() const
    {
        return timed_ && free() && same(times_.forward, times_.inputGrad) && same(times_.forward, times_.weightGrad) &&
               same(times_.backward, 2 * times_.forward);
    }
    [[nodiscard]] bool pairsSaveNothing() const { return same(times_.overlap, both()); }
    // A transfer that is small beside what can hide it, as in the Zero-Bubble paper's tables.
    [[nodiscard]] bool smallTransfer() const
    {
        return times_.transfer <= std::min({times_.forward, times_.inputGrad, times_.weightGrad}) / 8;
    }

    // A form's texts for a step of `work` that takes `makespan`. Ratios that hold for all times have a text of their own.
    struct Step {
        std::string makespan;
        double value;
        std::string work = "m·(F+B)";
        double busy = 0;
        std::string bubble;    // empty: 1 − work/makespan
        std::string overIdeal; // empty: makespan/work − 1
        bool spans = true;     // some rank begins first and ends last, so that the span's figures are the makespan's
    };

    // Of a step in which nothing is computed again, but for those whose form says so.
    void add(const Step& step)
    {
        if (!recomputes_) put(step);
    }

    void put(const Step& step)
    {
        if (step.busy <= 0) return;
        if (timed_) forms_.makespan = {step.makespan, step.value};
        const bool own = free() && !step.bubble.empty();
        if (!own && !timed_) return;
        forms_.bubbleMakespan = {own ? step.bubble : "1 − " + step.work + "/(" + step.makespan + ")", 1 - step.busy / step.value};
        forms_.bubbleOverIdeal = {own ? step.overIdeal : "(" + step.makespan + ")/(" + step.work + ") − 1", step.value / step.busy - 1};
        if (!step.spans) return;
        forms_.span = forms_.makespan;
        forms_.bubbleSpan = forms_.bubbleMakespan;
    }

    void addSpan(std::string text, double value, std::string bubble, double busy)
    {
        if (busy <= 0 || recomputes_) return;
        forms_.span = {std::move(text), value};
        forms_.bubbleSpan = {std::move(bubble), 1 - busy / value};
    }

    void peak(std::string text, double value) { forms_.peakActivations = {std::move(text), value}; }

    [[nodiscard]] std::string plus(const char* hops) const { return free() ? std::string() : std::string("+") + hops + "·c"; }

    // Activations are computed again while a rank waits for a gradient, but for the last rank's, which never does: each of its
    // micro-batches takes one more forward, and the step with it. Transfers would hide behind that in part.
    bool addedRecomputing(Step step)
    {
        if (!recomputes_) return false;
        if (!free() || !timed_) return true;
        step.makespan += "+m·F";
        step.value += m_ * times_.forward;
        step.work = "m·(2F+B)";
        step.busy += m_ * times_.forward;
        step.bubble.clear();
        put(step);
        return true;
    }

    void naive()
    {
        const double c = times_.transfer;
        const Step step{"p·m·(F+B)" + plus("2m(p−1)"), p_ * m_ * both() + 2 * m_ * (p_ - 1) * c, "m·(F+B)", m_ * both(), "(p−1)/p", "p−1"};
        if (!addedRecomputing(step)) add(step);
        peak("1", 1);
    }

    // The first micro-batch's way there and the last one's back.
    Step filledOnce()
    {
        return {"(m+p−1)·(F+B)" + plus("2(p−1)"),
                (m_ + p_ - 1) * both() + 2 * (p_ - 1) * times_.transfer,
                "m·(F+B)",
                m_ * both(),
                "(p−1)/(m+p−1)",
                "(p−1)/m"};
    }

    void gpipe()
    {
        if (!addedRecomputing(filledOnce())) add(filledOnce());
        peak("m", m_);
    }

    // Two more forwards than 1F1B lie between neighbours, so that a gradient has the time of half a round to come back.
    void eager()
    {
        if (!addedRecomputing(filledOnce()) && times_.transfer <= both() / 2) add(filledOnce());
        peak("min(2p−1, m)", std::min(2 * p_ - 1, m_));
    }

    // In the steady state a micro-batch waits for hops; how often is known where m is a multiple of p.
    void oneFOneB()
    {
        peak("min(p, m)", std::min(p_, m_));
        Step step = filledOnce();
        if (addedRecomputing(step)) return;
        step.makespan = "(m+p−1)·(F+B)" + plus("(2(p−1)m/p+2(p−2))");
        step.value = (m_ + p_ - 1) * both() + (2 * (p_ - 1) * m_ / p_ + 2 * (p_ - 2)) * times_.transfer;
        if (free() || (p_ > 1 && std::fmod(m_, p_) == 0)) add(step);
    }

    // m a multiple of p, in groups of p: uneven rounds and other groups have no closed form.
    void interleaved()
    {
        if (std::fmod(m_, p_) != 0 || (group_ != 0 && group_ != p_)) return;
        // beyond that a chunk's hop is longer than what hides it; one rank has none
        if (free() || (p_ > 1 && v_ * times_.transfer <= times_.forward / 2))
            add({"(m+(p−1)/v)·(F+B)" + plus("2(p·v−1)"), (m_ + (p_ - 1) / v_) * both() + 2 * (p_ * v_ - 1) * times_.transfer, "m·(F+B)",
                 m_ * both(), "(p−1)/(v·m+p−1)", "(p−1)/(v·m)"});
        peak("min(m, ((v−1)·p+2(p−1)+1)/v)", std::min(m_, ((v_ - 1) * p_ + 2 * (p_ - 1) + 1) / v_));
    }

    void loopedBfs()
    {
        if (free() && m_ >= p_)
            add({"(m+(p−1)/v)·(F+B)", (m_ + (p_ - 1) / v_) * both(), "m·(F+B)", m_ * both(), "(p−1)/(v·m+p−1)", "(p−1)/(v·m)"});
        peak("m", m_);
    }

    [[nodiscard]] double splitWork() const { return times_.forward + times_.inputGrad + times_.weightGrad; }

    void zbH1()
    {
        peak("min(p, m)", std::min(p_, m_));
        if (!splits()) return;
        const auto& [F, I, W, B, O, c] = times_;
        const double busy = m_ * splitWork();
        if (m_ < p_) {
            if (free()) add({"(m+p−1)·(F+I)+W", (m_ + p_ - 1) * (F + I) + W, "m·(F+I+W)", busy, "", ""});
            return;
        }
        if (!free() && (m_ < 2 * p_ || !smallTransfer())) return;
        add({"m·(F+I+W)+(p−1)(F+I−W)" + plus("4(p−1)"), busy + (p_ - 1) * (F + I - W) + 4 * (p_ - 1) * c, "m·(F+I+W)", busy,
             unitTimes() ? "(p−1)/(3m+p−1)" : "", unitTimes() ? "(p−1)/(3m)" : ""});
    }

    void zbH2()
    {
        peak("min(2p−1, m)", std::min(2 * p_ - 1, m_));
        const auto& [F, I, W, B, O, c] = times_;
        if (!splits() || m_ < 2 * p_ || !smallTransfer() || F + I < 2 * W) return;
        const double busy = m_ * splitWork();
        const std::string span = "m·(F+I+W)+(p−1)(F+I−2W)" + plus("2(p−1)");
        addSpan(span, busy + (p_ - 1) * (F + I - 2 * W) + 2 * (p_ - 1) * c, unitTimes() ? "0" : "1 − m·(F+I+W)/(" + span + ")", busy);
        if (unitTimes()) add({"m·(F+I+W)+(p−1)·F", busy + (p_ - 1) * F, "m·(F+I+W)", busy, "(p−1)/(3m+p−1)", "(p−1)/(3m)", false});
    }

    void interleavedZb()
    {
        if (std::fmod(m_, p_) != 0) return;
        peak("p", p_);
        const auto& [F, I, W, B, O, c] = times_;
        if (!splits() || !free()) return;
        const double busy = m_ * splitWork();
        add({"m·(F+I+W)+(p−1)(F+I−W)/v", busy + (p_ - 1) * (F + I - W) / v_, "m·(F+I+W)", busy, unitTimes() ? "(p−1)/(3v·m+p−1)" : "",
             unitTimes() ? "(p−1)/(3v·m)" : ""});
    }

    void zbV()
    {
        if (m_ < 2 * p_) return;
        peak("p", p_);
        if (!unitTimes()) return;
        const double busy = m_ * splitWork();
        add({"m·(F+I+W)+(p−1)·F/2", busy + (p_ - 1) * times_.forward / 2, "m·(F+I+W)", busy, "(p−1)/(6m+p−1)", "(p−1)/(6m)", false});
        addSpan("m·(F+I+W)", busy, "0", busy);
    }

    // The building block's lifespans (arXiv 2405.15362): reached once the pipeline is full.
    void half()
    {
        if (m_ >= 2 * p_) peak("⌊(p+2)/2⌋", std::floor((p_ + 2) / 2));
    }
    void least()
    {
        if (m_ >= 2 * p_) peak("⌊(p+4)/3⌋", std::floor((p_ + 4) / 3));
    }

    // Bubble time (p/2−1)(F&B + B − 3W) of the rank that idles longest; with F = I = W and pairs that save nothing it is every rank's.
    void dualPipe()
    {
        peak("p+1", p_ + 1);
        if (!unitTimes() || !pairsSaveNothing()) return;
        const double busy = m_ * splitWork();
        add({"m·(F+I+W)+(p/2−1)(F&B+B−3W)", busy + (p_ / 2 - 1) * (times_.overlap + times_.backward - 3 * times_.weightGrad), "m·(F+I+W)",
             busy, "(p−2)/(3m+p−2)", "(p−2)/(3m)"});
    }

    // The same in 2p stages of half a rank.
    void dualPipeV()
    {
        peak("p+½", p_ + 0.5);
        if (!unitTimes() || !pairsSaveNothing()) return;
        const double busy = m_ * splitWork();
        add({"m·(F+I+W)+(p−1)(F&B+B−3W)/2", busy + (p_ - 1) * (times_.overlap + times_.backward - 3 * times_.weightGrad) / 2, "m·(F+I+W)",
             busy, "(p−1)/(3m+p−1)", "(p−1)/(3m)"});
    }

    // The paper counts a forward and a backward of equal time, and m in units of p. Doubled forwards and halved backwards take at most
    // as many slots as engine/schedule/chimera.cpp says, for the second rank need not wait for both forwards of the first.
    void chimera()
    {
        if (concatenation_ != Concatenation::Direct || std::fmod(m_, p_) != 0 || !timed_ || !free() || !same(times_.forward, times_.backward))
            return;
        add({"m·(F+B)+(p−2)·(F+B)/2", m_ * both() + (p_ - 2) * both() / 2, "m·(F+B)", m_ * both(), "(p−2)/(2m+p−2)", "(p−2)/(2m)"});
    }

    void seq1F1B()
    {
        if (free())
            add({"(m+(p−1)/k)·(F+B)", (m_ + (p_ - 1) / k_) * both(), "m·(F+B)", m_ * both(), "(p−1)/(k·m+p−1)", "(p−1)/(k·m)"});
        peak("min(m, (p−1+k)/k)", std::min(m_, (p_ - 1 + k_) / k_));
    }

    void forwardOnly()
    {
        const double F = times_.forward;
        add({"(m+p−1)·F" + plus("(p−1)"), (m_ + p_ - 1) * F + (p_ - 1) * times_.transfer, "m·F", m_ * F, "(p−1)/(m+p−1)", "(p−1)/m", false});
        if (timed_ && free()) addSpan("m·F", m_ * F, "0", m_ * F); // every rank works from its first forward on
        peak("1", 1); // while a forward runs
    }

    FormTimes times_;
    bool timed_;
    double p_, v_, m_, k_;
    double group_;
    Concatenation concatenation_;
    bool recomputes_;
    ClosedForms forms_;
};

// Whatever goes to the host comes back in time or does not, and is held for a while or is not.
bool offloads(const PipelineSpec& pipeline) { return requestOf(pipeline).offload > 0; }

// Equal ranks in one node whose transfers occupy nothing and take the same time everywhere: what the forms speak of. A quantity that
// machines come to have is none of it until it is named here.
bool plain(const CostTable& costs)
{
    MachineModel machine = costs.machine;
    machine.memory = 0; // is only shown
    machine.host = {};  // what goes there has no forms
    if (machine.ranksPerNode == 0) machine.between = {};
    if (machine.replicas == 1) {
        machine.replica = {};
        machine.bucketBytes = MachineModel{}.bucketBytes;
    }
    if (machine != MachineModel{} || costs.sharding != Sharding::None || !costs.sliceTime.empty()) return false;
    if (costs.inside.bytesPerSecond <= 0) return true;
    for (std::size_t s = 1; s + 1 < costs.stages.size(); ++s) // what the last stage gives out goes nowhere
        if (costs.stages[s].outputBytes != costs.stages.front().outputBytes) return false;
    return true;
}

} // namespace

ClosedForms closedForms(const PipelineSpec& pipeline, const std::optional<FormTimes>& times)
{
    if (offloads(pipeline)) return {};
    return Forms(pipeline, times).of(pipeline.schedule);
}

ClosedForms formsBeside(const PipelineSpec& pipeline, const CostTable& costs)
{
    if (const std::optional<FormTimes> times = equalTimes(costs, pipeline)) return closedForms(pipeline, times);
    ClosedForms forms;
    forms.peakActivations = closedForms(pipeline).peakActivations;
    return forms;
}

std::optional<FormTimes> equalTimes(const CostTable& costs, const PipelineSpec& pipeline)
{
    if (costs.stages.empty() || costs.jitter != 0 || !plain(costs)) return std::nullopt;
    const StageCosts& first = costs.stages.front();
    // Rounding to nanoseconds may part stages that are meant to be equal, by one.
    const auto near = [](TimeNs a, TimeNs b) { return std::abs(a - b) <= 1; };
    for (const StageCosts& stage : costs.stages)
        if (!near(stage.forward, first.forward) || !near(stage.backward, first.backward) || !near(stage.inputGrad, first.inputGrad) ||
            !near(stage.weightGrad, first.weightGrad) || !near(stage.overlap, first.overlap) || stage.optimizer != 0)
            return std::nullopt;
    const double parts = static_cast<double>(pipeline.chunks) * pipeline.parts();
    const auto whole = [parts](TimeNs part) { return static_cast<double>(part) * parts; };
    return FormTimes{.forward = whole(first.forward),
                     .inputGrad = whole(first.inputGrad),
                     .weightGrad = whole(first.weightGrad),
                     .backward = whole(first.backward),
                     .overlap = whole(first.overlap),
                     .transfer = static_cast<double>(costs.transfer)};
}

std::optional<ClosedForm> bestMicrobatchSize(const PipelineSpec& pipeline, double batch, double fixed, double perSample)
{
    constexpr std::string_view kOneChunk[] = {"gpipe", "gpipe-lifo", "1f1b", "eager-1f1b"};
    constexpr std::string_view kChunks[] = {"interleaved", "looped-bfs"};
    const bool one = std::ranges::find(kOneChunk, pipeline.schedule) != std::end(kOneChunk);
    const bool several = std::ranges::find(kChunks, pipeline.schedule) != std::end(kChunks);
    if (pipeline.recompute != Recompute::None || offloads(pipeline)) return std::nullopt;
    if ((!one && !several) || pipeline.ranks < 2 || fixed <= 0 || perSample <= 0) return std::nullopt;
    const double best = std::sqrt(batch * fixed / ((pipeline.ranks - 1) * perSample));
    return one ? ClosedForm{"√(B·α/((p−1)·β))", best} : ClosedForm{"v·√(B·α/((p−1)·β))", pipeline.chunks * best};
}

double amdahlSpeedup(double serial, double ranks) { return 1 / (serial + (1 - serial) / ranks); }

double gustafsonSpeedup(double serial, double ranks) { return serial + (1 - serial) * ranks; }

} // namespace stagecraft::engine
