// SPDX-License-Identifier: Apache-2.0
//
// One part of the check on a GPU (tests/gpu/check starts it once for each, so that none takes down the others).
//
//   gpu_probe --list
//   gpu_probe latency --buffer-kib 64 --flush-ms 20 --activities latency.activities
//
// Prints one JSON object: {"figures": {...}, "problems": [...]}. Exit 0: all is as expected; 1: it is not; 2: wrong use; 77: there is no GPU.
#include "engine/runtime/cuda_devices.h"
#include "tests/gpu/probe_report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>

namespace stagecraft::gpu {
namespace {

std::vector<ProbePart> allParts()
{
    std::vector<ProbePart> all = recordingParts();
    std::ranges::move(engineParts(), std::back_inserter(all));
    return all;
}

int wrongUse(const std::string& why)
{
    std::cerr << "gpu_probe: " << why << "\nusage: gpu_probe --list | PART [--variant V] [--buffer-kib N] [--flush-ms N] [--limit-ms X] [--activities FILE]\n";
    return 2;
}

template <class Number>
bool readNumber(std::string_view text, Number& into)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc{} && end == text.data() + text.size() && into >= 0;
}

bool set(ProbeOptions& options, std::string_view name, const std::string& value)
{
    if (name == "--variant") return options.variant = value, true;
    if (name == "--activities") return options.activities = value, true;
    if (name == "--buffer-kib") return readNumber(value, options.bufferKib) && options.bufferKib > 0;
    if (name == "--flush-ms") return readNumber(value, options.flushMs) && options.flushMs > 0;
    if (name == "--limit-ms") return readNumber(value, options.limitMs);
    return false;
}

bool hasVariant(const ProbePart& part, const std::string& variant)
{
    return part.variants.empty() ? variant.empty() : !variant.empty() && ("|" + part.variants + "|").find("|" + variant + "|") != std::string::npos;
}

void print(const ProbeReport& report)
{
    nlohmann::ordered_json figures = nlohmann::ordered_json::object();
    for (const auto& [name, value] : report.figures) std::visit([&, &key = name](const auto& each) { figures[key] = each; }, value);
    std::cout << nlohmann::ordered_json{{"figures", figures}, {"problems", report.problems}}.dump() << std::endl;
}

int run(const std::vector<std::string>& arguments)
{
    const std::vector<ProbePart> parts = allParts();
    if (arguments == std::vector<std::string>{"--list"}) {
        for (const ProbePart& part : parts) std::cout << part.name << (part.variants.empty() ? "" : " " + part.variants) << '\n';
        return 0;
    }
    if (arguments.empty()) return wrongUse("which part?");
    const auto part = std::ranges::find(parts, arguments[0], &ProbePart::name);
    if (part == parts.end()) return wrongUse("there is no part " + arguments[0]);
    ProbeOptions options;
    for (std::size_t i = 1; i < arguments.size(); i += 2)
        if (i + 1 == arguments.size() || !set(options, arguments[i], arguments[i + 1])) return wrongUse("what is " + arguments[i] + "?");
    if (!hasVariant(*part, options.variant)) return wrongUse(part->name + " takes --variant " + (part->variants.empty() ? "none" : part->variants));

    // The parts attach CUPTI before CUDA makes a context; so this asks the driver alone
    if (const runtime::DeviceSource& devices = runtime::cudaDevices(); devices.gpus().empty()) {
        std::cerr << "gpu_probe: no GPU can be used: " << devices.whyNone() << '\n';
        return 77;
    }
    ProbeReport report;
    try {
        part->run(options, report);
    } catch (const std::exception& error) {
        report.problems.emplace_back(error.what());
    }
    print(report);
    return report.problems.empty() ? 0 : 1;
}

} // namespace
} // namespace stagecraft::gpu

int main(int argc, char** argv)
{
    const int code = stagecraft::gpu::run({argv + 1, argv + argc});
    std::fflush(nullptr);
    std::_Exit(code); // CUDA's and NCCL's threads may hold what static objects would take away
}
