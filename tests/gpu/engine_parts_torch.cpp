// SPDX-License-Identifier: Apache-2.0
//
// What the engine stands on besides CUPTI: the books of memory, NCCL, LibTorch's kernels, memory that runs out, and a GPU that fails.
#include "engine/probe/device_blocks.h"
#include "engine/probe/tagging_allocator.h"
#include "engine/runtime/cuda_devices.h"
#include "engine/runtime/optimizer_torch.h"
#include "engine/transport/nccl/clique.h"
#include "engine/transport/rank_places.h"
#include "tests/gpu/probe_report.h"
#include "tests/gpu/recording.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

namespace stagecraft::gpu {

using namespace runtime;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;

namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);
constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

void synchronize() { c10::cuda::device_synchronize(); }

double largest(const at::Tensor& values) { return values.abs().max().to(at::kDouble).item<double>(); }
// Of the difference, by the largest of the expected.
double offBy(const at::Tensor& got, const at::Tensor& expected)
{
    return largest(got.cpu().to(at::kDouble) - expected.to(at::kDouble)) / std::max(largest(expected), 1e-30);
}

// (6) The module's tracker books on the ledger what LibTorch's statistics say, also where another thread lets go.
void memory(const ProbeOptions&, ProbeReport& report)
{
    at::empty({1}, at::TensorOptions(kGpu)); // the context
    cudaDevices().bookMemory({.taken = &deviceBlockTaken, .gone = &deviceBlockGone});
    const auto statistics = [] {
        const auto all = c10::cuda::CUDACachingAllocator::getDeviceStats(0);
        return std::pair{all.requested_bytes[kAll].current, all.allocated_bytes[kAll].current};
    };
    const LedgerHandle ledger = MemoryLedger::create(monotonicClock());
    const auto booked = [&] {
        const BytesByClass held = ledger->held();
        return std::accumulate(held.begin(), held.end(), Bytes{0});
    };
    const auto before = statistics();
    std::vector<at::Tensor> tensors;
    std::mt19937 random(1);
    std::int64_t asked = 0;
    const auto compare = [&](const std::string& when) {
        const auto [requested, allocated] = statistics();
        report.figure(when + ": ledger", booked());
        report.figure(when + ": requested_bytes", requested - before.first);
        report.figure(when + ": allocated_bytes", allocated - before.second);
        report.expect(booked() == requested - before.first || booked() == allocated - before.second, when + ": the ledger has other sums than LibTorch's allocator");
    };
    {
        const AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations});
        for (int i = 0; i < 200; ++i) {
            const auto bytes = std::uniform_int_distribution<std::int64_t>(1, i % 10 == 0 ? 50'000'000 : 100'000)(random);
            tensors.push_back(at::empty({bytes}, at::TensorOptions(kGpu).dtype(at::kByte)));
            asked += bytes;
        }
    }
    report.figure("asked for", asked);
    compare("all held");
    std::jthread([&] {
        std::shuffle(tensors.begin(), tensors.end(), random);
        tensors.resize(tensors.size() / 2);
    }).join();
    compare("half let go by another thread");
    tensors.clear();
    compare("all let go");
    report.expect(booked() == 0, "something stays booked");
}

// (8) One rank sends to itself, in one group, through the engine's communicator.
void ncclToItself(const ProbeOptions& options, ProbeReport& report)
{
    auto recording = Recording::attach({});
    const auto library = loadNccl();
    if (!library.ok()) throw std::runtime_error(library.error().message);
    report.figure("NCCL", library.value().version);
    const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(false, 0);
    const c10::cuda::CUDAStreamGuard here(stream);
    constexpr std::int64_t kBytes = 1 << 20;
    const at::Tensor from = at::randint(0, 256, {kBytes}, at::TensorOptions(kGpu).dtype(at::kByte));
    const at::Tensor to = at::zeros_like(from);
    const auto useDevice = [](int device) -> Expected<void> {
        c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
        return {};
    };
    NcclClique clique({.api = library.value().api, .clock = monotonicClock()}, {.size = 1, .members = {{0, 0}}, .useDevice = useDevice});
    const auto must = [](const Expected<void>& done) {
        if (!done.ok()) throw std::runtime_error(done.error().message);
    };
    const auto id = newNcclId(library.value().api);
    if (!id.ok()) throw std::runtime_error(id.error().message);
    must(clique.connect(id.value()));
    {
        const NcclWatchdog watchdog(clique);
        NcclCommunicator& own = clique.of(0);
        const auto exchange = [&] {
            must(own.exchange("to itself",
                              {{NcclPart::Side::Send, 0, from.data_ptr(), kBytes}, {NcclPart::Side::Receive, 0, to.data_ptr(), kBytes}}, stream.stream()));
        };
        exchange();
        synchronize();
        report.expect(at::equal(from, to), "what came is not what was sent");
        to.zero_();
        synchronize();
        if (recording.ok()) {
            must(recording.value()->start(TraceLevel::Kernels));
            {
                const WorkScope scope(&recording.value()->marks(), Step{1}, traces::makeAction(traces::ActionKind::SendForward, Stage{0}, MicroBatch{0}).work);
                exchange();
            }
            synchronize();
            const Recorded& all = recording.value()->stop();
            int kernels = 0, marked = 0, copies = 0;
            std::string name;
            for (const JoinedActivity& each : all.activities) {
                copies += std::holds_alternative<CopyActivity>(each.activity) ? 1 : 0;
                const auto* kernel = std::get_if<KernelActivity>(&each.activity);
                if (kernel == nullptr) continue;
                ++kernels;
                marked += each.work != kNoWork ? 1 : 0;
                name = all.nameOf(*kernel);
            }
            report.figure("kernels", kernels);
            // NCCL's own thread launches for a communicator that does not block, and a mark is the launching thread's
            report.figure("kernels with a mark", marked);
            report.figure("copies", copies);
            report.figure("name", name);
            report.expect(kernels > 0, "CUPTI recorded no kernel of the exchange");
            report.expect(at::equal(from, to), "what came is not what was sent");
            if (!options.activities.empty()) must(recording.value()->save(options.activities));
        } else {
            report.expect(false, recording.error().message);
        }
        const at::Tensor values = at::full({3}, 2.0, kGpu);
        synchronize();
        must(own.allReduce("of one", {{.from = values.data_ptr(), .to = values.data_ptr(), .count = 3}}, stream.stream()));
        synchronize();
        report.expect(at::equal(values, at::full({3}, 2.0, kGpu)), "a sum of one rank is another");
    }
    must(clique.finish());
}

// Two ranks on one GPU: the engine refuses before anything starts, and NCCL's own refusal comes back as an error, not as a hang.
void ncclTwice(const ProbeOptions&, ProbeReport& report)
{
    const auto library = loadNccl();
    if (!library.ok()) throw std::runtime_error(library.error().message);
    const std::vector<RankPlace> ranks{{"this", "GPU-0"}, {"this", "GPU-0"}};
    report.expect(!checkOneRankPerGpu(ranks).ok(), "the engine lets two ranks on one GPU");
    const auto useDevice = [](int device) -> Expected<void> {
        c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
        return {};
    };
    NcclClique clique({.api = library.value().api, .clock = monotonicClock(), .patience = {.connect = 30'000'000'000}},
                      {.size = 2, .members = {{0, 0}, {1, 0}}, .useDevice = useDevice});
    const auto id = newNcclId(library.value().api);
    if (!id.ok()) throw std::runtime_error(id.error().message);
    const TimeNs begin = monotonicClock().now();
    const Expected<void> met = clique.connect(id.value());
    report.figure("refused after, ms", static_cast<double>(monotonicClock().now() - begin) / 1e6);
    report.expect(!met.ok(), "NCCL connects two ranks on one GPU");
    if (met.ok()) return;
    report.figure("text", met.error().message);
    // The process goes on, and so does the GPU.
    report.expect(largest(at::full({8}, 3.0, kGpu)) == 3.0, "the GPU does not go on");
}

// (9) The engine's fused optimizer, bf16, causal attention and TF32 against the CPU.
void kernels(const ProbeOptions&, ProbeReport& report)
{
    at::globalContext().setAllowTF32CuBLAS(false);
    const auto check = [&](const std::string& what, double off, double most) {
        report.figure(what + ": off by", off);
        report.expect(off <= most, what + " is off by more than " + std::to_string(most));
    };
    const at::Tensor a = at::randn({256, 256});
    const at::Tensor b = at::randn({256, 256});
    check("matmul", offBy(at::matmul(a.to(kGpu), b.to(kGpu)), at::matmul(a, b)), 1e-5);
    check("matmul bf16", offBy(at::matmul(a.to(kGpu).to(at::kBFloat16), b.to(kGpu).to(at::kBFloat16)).to(at::kFloat), at::matmul(a, b)), 2e-2);
    at::globalContext().setAllowTF32CuBLAS(true);
    check("matmul TF32", offBy(at::matmul(a.to(kGpu), b.to(kGpu)), at::matmul(a, b)), 5e-3);
    at::globalContext().setAllowTF32CuBLAS(false);

    const at::Tensor q = at::randn({2, 4, 128, 64});
    const at::Tensor k = at::randn({2, 4, 128, 64});
    const at::Tensor v = at::randn({2, 4, 128, 64});
    const auto attention = [](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
        return at::scaled_dot_product_attention(x, y, z, {}, 0.0, /*is_causal=*/true);
    };
    const at::Tensor expected = attention(q, k, v);
    check("causal attention", offBy(attention(q.to(kGpu), k.to(kGpu), v.to(kGpu)), expected), 1e-3);
    const auto half = [](const at::Tensor& x) { return x.to(kGpu).to(at::kBFloat16); };
    check("causal attention bf16", offBy(attention(half(q), half(k), half(v)).to(at::kFloat), expected), 3e-2);

    engine::RunSpec spec;
    spec.optimizer = engine::OptimizerKind::AdamW;
    const at::Tensor weight = at::randn({1000, 33});
    const at::Tensor gradient = at::randn({1000, 33});
    const auto trained = [&](const c10::Device& device) {
        const at::Tensor parameter = weight.clone().to(device).requires_grad_();
        parameter.mutable_grad() = gradient.clone().to(device);
        StageOptimizer optimizer(spec, {parameter});
        for (int i = 0; i < 5; ++i) optimizer.step(1e-2);
        return parameter.detach().cpu();
    };
    check("fused AdamW, 5 steps", offBy(trained(kGpu), trained(c10::Device(at::kCPU))), 1e-5);
}

// (10) Memory that runs out is an error that is caught, and the process goes on.
void outOfMemory(const ProbeOptions&, ProbeReport& report)
{
    namespace allocator = c10::cuda::CUDACachingAllocator;
    at::empty({1}, at::TensorOptions(kGpu));
    const double total = static_cast<double>(cudaDevices().gpus().at(0).memory);
    const auto tenth = static_cast<std::int64_t>(total * 0.1);
    allocator::setMemoryFraction(0.05, 0);
    bool caught = false;
    try {
        at::empty({tenth}, at::TensorOptions(kGpu).dtype(at::kByte));
    } catch (const c10::OutOfMemoryError& error) {
        caught = true;
        report.figure("text", std::string(error.what_without_backtrace()).substr(0, 120));
    }
    report.expect(caught, "a tenth of the GPU was given out where a twentieth was allowed");
    report.figure("num_ooms", allocator::getDeviceStats(0).num_ooms);
    allocator::setMemoryFraction(1.0, 0);
    allocator::emptyCache();
    const at::Tensor after = at::matmul(at::full({64, 64}, 1.0, kGpu), at::full({64, 64}, 1.0, kGpu));
    report.expect(largest(after) == 64.0, "the GPU computes something else afterwards");
    report.expect(at::empty({tenth}, at::TensorOptions(kGpu).dtype(at::kByte)).numel() == tenth, "what is free is not given out afterwards");
}

// A kernel that is asked for what is not there ends CUDA for the process: it is caught, and the engine knows that no run can follow.
void fault(const ProbeOptions&, ProbeReport& report)
{
    const at::Tensor table = at::zeros({4, 2}, at::TensorOptions(kGpu));
    report.expect(cudaDevices().fault({0}).empty(), "the GPU counts as lost before anything has failed");
    bool caught = false;
    try {
        const at::Tensor beyond = at::index_select(table, 0, at::full({1}, 100, at::TensorOptions(kGpu).dtype(at::kLong)));
        synchronize();
    } catch (const c10::Error& error) {
        caught = true;
        report.figure("text", std::string(error.what_without_backtrace()).substr(0, 120));
    }
    report.expect(caught, "row 100 of 4 was read without an error");
    const std::string lost = cudaDevices().fault({0});
    report.figure("fault", lost);
    report.expect(!lost.empty(), "the GPU counts as sound after an error for good");
}

} // namespace

std::vector<ProbePart> engineParts()
{
    return {
        {"memory", "", memory},
        {"nccl-to-itself", "", ncclToItself},
        {"nccl-two-on-one", "", ncclTwice},
        {"kernels", "", kernels},
        {"out-of-memory", "", outOfMemory},
        {"fault", "", fault},
    };
}

} // namespace stagecraft::gpu
