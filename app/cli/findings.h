// SPDX-License-Identifier: Apache-2.0
//
// What `doctor` looks for on this machine. Each look-up is one function that returns a finding: there, with its version, or
// not, with the reason and what that disables. Libraries are opened by name, so that this program links none of them.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::cli {

struct Finding {
    std::string key = {};   // "cupti", of the JSON form
    std::string title = {}; // "CUPTI"
    bool found = false;
    std::string detail = {};   // version, model or amount; why not where nothing was found
    std::string disables = {}; // what does not work without it; empty where nothing is missing
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
