// SPDX-License-Identifier: Apache-2.0
//
// What one part of gpu_probe found out. Figures go into the table and the JSON; what is expected and is not so makes the part fail.
//
//   report.figure("kernels", kernels);
//   report.expect(marked == kernels, "2 of 40 kernels have no mark");
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stagecraft::gpu {

struct ProbeReport {
    using Value = std::variant<std::int64_t, double, std::string>;
    std::vector<std::pair<std::string, Value>> figures;
    std::vector<std::string> problems;

    template <class Number>
    void figure(std::string name, Number value)
    {
        if constexpr (std::is_integral_v<Number>) figures.emplace_back(std::move(name), static_cast<std::int64_t>(value));
        else if constexpr (std::is_floating_point_v<Number>) figures.emplace_back(std::move(name), static_cast<double>(value));
        else figures.emplace_back(std::move(name), std::string(std::move(value)));
    }
    void expect(bool holds, std::string otherwise)
    {
        if (!holds) problems.push_back(std::move(otherwise));
    }
};

struct ProbeOptions {
    std::string variant;   // what each part has of them, see gpu_probe --list
    int bufferKib = 128;   // latency
    int flushMs = 50;      // latency
    double limitMs = 0;    // latency: 95 of 100 kernels are seen within; 0: no limit
    std::string activities; // file for what CUPTI recorded; empty: none
};

struct ProbePart {
    std::string name;
    std::string variants; // "a|b", empty where there is one way
    std::function<void(const ProbeOptions&, ProbeReport&)> run;
};

// With LibTorch: what CUPTI records, and what the engine stands on.
std::vector<ProbePart> recordingParts();
std::vector<ProbePart> engineParts();

} // namespace stagecraft::gpu
