// SPDX-License-Identifier: Apache-2.0
//
// What `doctor` looks for on this machine. Each look-up is one function that returns a finding: there, with its version, or
// not, with the reason and what that disables. Libraries are opened by name, so that this program links none of them.
#pragma once

#include "traces/base/units.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

struct FoundGpu {
    std::string name = {};
    traces::Bytes memory = 0;
    std::string computeCapability = {}; // "9.0"; empty where the driver does not tell
};

struct Finding {
    std::string key = {};   // "cupti", of the JSON form
    std::string title = {}; // "CUPTI"
    bool found = false;
    std::string detail = {};   // version, model or amount; why not where nothing was found
    std::string disables = {}; // what does not work without it, or with it as it is; empty where nothing is missing
    std::vector<FoundGpu> gpus = {}; // of findGpus() alone, in the order of their numbers
};

// The host: processor, cores, memory.
Finding findCpu();
Finding findCores();
Finding findMemory();

// The live engine and the libraries for GPUs.
Finding findLibTorch();
Finding findCuda();
Finding findCupti();
Finding findNccl();
inline constexpr const char* kGpusKey = "gpus";
Finding findGpus();

// What mode processes needs.
Finding findMpi();
std::string noMpiModule(); // why this build has no MPI, and what to do

// The desktop program.
Finding findQt();
Finding findDesktop();
Finding findFonts();

// All of them, in this order.
std::vector<Finding> examineMachine();

} // namespace stagecraft::cli
