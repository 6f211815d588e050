// SPDX-License-Identifier: Apache-2.0
//
// What the live engine finds in this process: for `doctor` and for the window's about box.
#pragma once

#include <string>

namespace stagecraft::runtime {

struct RuntimeCapabilities {
    std::string torchVersion;  // "2.11.0"
    std::string vectorUnits;   // what LibTorch's kernels use: "AVX512"
    int hardwareThreads = 0;   // cores that threads can run on
    int intraOpThreads = 0;    // what LibTorch would take for one operation; a rank takes one
    std::string mkl;           // version, for matrix products; empty where LibTorch has none
    std::string oneDnn;        // the same
    std::string openMp;        // the same
};

RuntimeCapabilities runtimeCapabilities();

} // namespace stagecraft::runtime
