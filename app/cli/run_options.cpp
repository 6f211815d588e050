// SPDX-License-Identifier: Apache-2.0
#include "app/cli/run_options.h"

#include "app/cli/machine_overrides.h"
#include "app/cli/trace_argument.h"
#include "engine/data/dataset.h"
#include "engine/plan/gpu_list.h"
#include "engine/plan/plan_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace stagecraft::cli {

namespace {

constexpr int kMaxSteps = 1'000'000;

// Finds `text` among the names of `values`; an error lists them.
template <class Value, std::size_t N>
Expected<Value> choose(std::string_view option, const std::string& text, const std::array<Value, N>& values,
                       std::string_view (*nameOf)(Value))
{
    std::vector<std::string_view> names;
    for (const Value value : values) {
        if (nameOf(value) == text) return value;
        names.push_back(nameOf(value));
    }
    return Error{fmt::format("{} {}: not available; there is: {}", option, text, fmt::join(names, ", "))};
}

// --data text, text:FILE, idx:FILE, npy:FILE or synthetic, with --targets and --tokens.
Expected<engine::Plan> withData(engine::Plan plan, const RunOptions& options)
{
    engine::DataSpec& data = plan.data;
    if (options.data) {
        const std::size_t colon = std::min(options.data->find(':'), options.data->size());
        const std::string source = options.data->substr(0, colon);
        const auto known = engine::meaningOf(engine::kDataSourceWords, source);
        if (!known)
            return Error{fmt::format("--data {}: not known; synthetic, text, text:FILE, idx:FILE or npy:FILE", *options.data)};
        data = {.source = *known, .path = options.data->substr(std::min(colon + 1, options.data->size())), .targets = {}};
    }
    if (options.targets) data.targets = *options.targets;
    if (options.tokens) {
        const auto known = engine::meaningOf(engine::kTokenWords, *options.tokens);
        if (!known) return Error{fmt::format("--tokens {}: not known; characters or bytes", *options.tokens)};
        data.tokens = *known;
    }
    if (!options.data && !options.targets && !options.tokens) return plan;
    if (auto sound = engine::checkData(data, plan.model); !sound.ok()) return sound.error();
    return plan;
}

// The whole text, or false.
bool readNumber(const std::string& text, double& out)
{
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
    return code == std::errc{} && end == text.data() + text.size();
}

} // namespace

void addRunOptions(CLI::App& verb, RunOptions& options)
{
    const auto text = [&verb](const char* name, Overrides::Text& target, const char* type, const char* help) {
        verb.add_option_function<std::string>(
                name, [&target](const std::string& value) { target = value; }, help)
            ->type_name(type);
    };
    verb.add_option("PLAN", options.plan, "Plan file or preset; it needs a model")->required();
    text("--mode", options.mode, "threads|emulated|processes", "A thread per rank, virtual ranks on virtual clocks, or a process per rank, under mpirun or torchrun");
    text("--device", options.device, "cpu|cuda", "Where tensors live and actions compute");
    text("--gpus", options.gpus, "N,N,...", "Device cuda: of each rank the number of its GPU, or cpu; otherwise they are spread evenly");
    text("--tracing", options.tracing, "host|events|kernels|api", "How much is recorded beneath the actions, each level more than the one before: of GPUs their kernels and calls; on the CPU, with kernels or api, LibTorch's operators");
    text("--tf32", options.tf32, "on|off", "Device cuda: whether products may round float32 to 10 bits of mantissa, which is faster");
    text("--steps", options.steps, "N", "Training steps");
    text("--check", options.check, "off|first|all", "On which steps gradients are compared with the sequential model's");
    text("--loss-scale", options.lossScale, "X", "A power of two that the loss has in the backward, and that is taken off the gradients again");
    text("--clip-norm", options.clipNorm, "X", "Gradients shrink to this norm of all of them together where it is larger; 0: they do not");
    text("--checkpoint", options.checkpoint, "DIR", "Folder that checkpoints are written to, after the last step and:");
    text("--checkpoint-every", options.checkpointEvery, "N", "After every so many steps as well");
    text("--resume", options.resume, "DIR", "Go on from a checkpoint: of one step, or the latest in a folder of several. --steps counts those before it too");
    text("--data", options.data, "SOURCE[:FILE]", "What it learns: synthetic, text (one ships with the program), text:FILE, idx:FILE or npy:FILE");
    text("--targets", options.targets, "FILE", "Targets or labels, for idx and npy");
    text("--tokens", options.tokens, "characters|bytes", "Of a text");
    text("--activations", options.activations, "allocator|saved-tensors",
         "What tells the activations of a micro-batch: the allocator, or beside it what autograd saves");
    text("--transport", options.transport, "auto|nccl|host", "How tensors go from GPU to GPU and replicas sum there: by NCCL, or by way of the host (mode processes; in mode threads nccl says how replicas sum)");
    text("--handoff", options.handoff, "boxes|mutex|ring|semaphore", "How tensors go from thread to thread (mode threads)");
    text("--handoff-depth", options.handoffDepth, "N", "Tensors that may wait between two stages before their sender has to; 0: all");
    text("--slowdown", options.slowdown, "x,x,...", "One factor per stage: its actions take so many times as long, on purpose");
    verb.add_option("--trace", options.trace, traceTargetHelp())->type_name("FILE");
    addJsonFlag(verb, options.json);
    addOverrides(verb, options.overrides);
}

std::string askedText(const CLI::App& verb)
{
    std::string text = verb.get_name();
    for (const CLI::Option* option : verb.get_options()) {
        if (option->count() == 0 || option->check_name("--trace") || option->check_name("--json")) continue;
        if (!option->get_positional()) text += " " + option->get_name();
        if (option->get_items_expected_max() > 0) text += fmt::format(" {}", fmt::join(option->results(), " "));
    }
    return text;
}

Expected<engine::Plan> withRunOptions(engine::Plan plan, const RunOptions& options)
{
    using engine::CheckMode;
    using engine::DeviceKind;
    using engine::RunMode;
    if (options.mode) {
        const auto mode =
            choose("--mode", *options.mode, std::array{RunMode::Threads, RunMode::Emulated, RunMode::Processes}, engine::runModeText);
        if (!mode.ok()) return mode.error();
        plan.run.mode = mode.value();
    }
    if (options.device) {
        const auto device = choose("--device", *options.device, std::array{DeviceKind::Cpu, DeviceKind::Cuda}, engine::deviceText);
        if (!device.ok()) return device.error();
        plan.run.device = device.value();
        if (plan.run.device == DeviceKind::Cpu) plan.run.gpus.clear();
    }
    if (options.tracing) {
        using traces::TraceLevel;
        const auto level = choose("--tracing", *options.tracing, std::array{TraceLevel::HostSpans, TraceLevel::Events, TraceLevel::Kernels, TraceLevel::Api},
                                  +[](TraceLevel each) { return traces::traceLevelText(each); });
        if (!level.ok()) return level.error();
        plan.run.tracing = level.value();
    }
    if (options.tf32) {
        const auto tf32 = choose("--tf32", *options.tf32, std::array{false, true}, +[](bool on) { return std::string_view(on ? "on" : "off"); });
        if (!tf32.ok()) return tf32.error();
        plan.run.tf32 = tf32.value();
    }
    if (options.gpus) {
        Expected<std::vector<int>> gpus = engine::parseGpus(*options.gpus);
        if (!gpus.ok()) return gpus.error().in("--gpus");
        plan.run.gpus = std::move(gpus).value();
    }
    if (options.check) {
        const auto check = choose("--check", *options.check, std::array{CheckMode::Off, CheckMode::First, CheckMode::All},
                                  engine::checkModeText);
        if (!check.ok()) return check.error();
        plan.run.check = check.value();
    }
    if (options.handoff) {
        using engine::HandoffKind;
        const auto kind = choose("--handoff", *options.handoff,
                                 std::array{HandoffKind::Boxes, HandoffKind::Mutex, HandoffKind::Ring, HandoffKind::Semaphore},
                                 +[](HandoffKind k) { return engine::wordOf(engine::kHandoffWords, k); });
        if (!kind.ok()) return kind.error();
        plan.run.handoff = kind.value();
        if (kind.value() == HandoffKind::Boxes) plan.run.handoffDepth = 0;
    }
    if (options.transport) {
        using engine::Transport;
        const auto transport = choose("--transport", *options.transport, std::array{Transport::Auto, Transport::Nccl, Transport::Host},
                                      +[](Transport each) { return engine::wordOf(engine::kTransportWords, each); });
        if (!transport.ok()) return transport.error();
        plan.run.transport = transport.value();
    }
    if (options.handoffDepth) {
        const Expected<long long> depth = parseWhole("--handoff-depth", *options.handoffDepth, 0, 1 << 20);
        if (!depth.ok()) return depth.error();
        plan.run.handoffDepth = static_cast<int>(depth.value());
    }
    if (options.slowdown) {
        Expected<std::vector<double>> factors = parseFactors(*options.slowdown, "stage", {.least = 1, .most = engine::kMostSlowdown});
        if (!factors.ok()) return factors.error().in("--slowdown");
        plan.run.slowdown = std::move(factors).value();
    }
    if (options.activations) {
        using engine::ActivationAccount;
        const auto account = choose("--activations", *options.activations, std::array{ActivationAccount::Allocator, ActivationAccount::SavedTensors},
                                    +[](ActivationAccount a) { return engine::wordOf(engine::kActivationAccountWords, a); });
        if (!account.ok()) return account.error();
        plan.run.activations = account.value();
    }
    if (options.steps) {
        const Expected<long long> steps = parseWhole("--steps", *options.steps, 1, kMaxSteps);
        if (!steps.ok()) return steps.error();
        plan.run.steps = static_cast<int>(steps.value());
    }
    if (options.clipNorm && !(readNumber(*options.clipNorm, plan.run.clipNorm) && plan.run.clipNorm >= 0 && plan.run.clipNorm <= 1e30))
        return Error{fmt::format("--clip-norm {} is not allowed; a number from 0 (no clipping) to 1e+30", *options.clipNorm)};
    if (options.lossScale && !(readNumber(*options.lossScale, plan.run.lossScale) && engine::isLossScale(plan.run.lossScale)))
        return Error{fmt::format("--loss-scale {} is not allowed; a power of two from 1 to 2^60, such as 1024, which changes no bit of a gradient", *options.lossScale)};
    if (options.checkpoint) plan.run.checkpoint = *options.checkpoint;
    if (options.resume) plan.run.resume = *options.resume;
    if (options.checkpointEvery) {
        const Expected<long long> every = parseWhole("--checkpoint-every", *options.checkpointEvery, 0, kMaxSteps);
        if (!every.ok()) return every.error();
        if (plan.run.checkpoint.empty())
            return Error{fmt::format("--checkpoint-every {}: there is no folder for the checkpoints; give --checkpoint DIR", *options.checkpointEvery)};
        plan.run.checkpointEvery = static_cast<int>(every.value());
    }
    return withData(std::move(plan), options);
}

} // namespace stagecraft::cli
