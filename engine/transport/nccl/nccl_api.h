// SPDX-License-Identifier: Apache-2.0
//
// The functions of NCCL that a run uses, found while the program runs, so that it starts where there is no NCCL. LibTorch's CUDA side
// brings it (libnccl.so.2): what is loaded already is taken, then what the loader finds by that name, then the given files.
//
//   const NcclLibrary nccl = loadNccl().value();
//   const NcclId id = newNcclId(nccl.api).value();       // on one rank; goes to all
//
// nccl.h is not needed to use this header: handles and streams are plain pointers, and nccl_api.cpp checks the rest against it. A test
// fills the table with functions of its own.
#pragma once

#include "traces/base/expected.h"

#include <array>
#include <compare>
#include <cstddef>
#include <string>
#include <vector>

namespace stagecraft::runtime {

using traces::Error;
using traces::Expected;

using NcclResult = int; // ncclResult_t, see nccl_errors.h

// By which the ranks of one clique find each other (ncclUniqueId).
struct NcclId {
    std::array<char, 128> bytes{};
    auto operator<=>(const NcclId&) const = default;
};

struct NcclApi {
    NcclResult (*getVersion)(int* version) = nullptr;
    NcclResult (*getUniqueId)(NcclId* id) = nullptr;
    NcclResult (*commInitRankConfig)(void** communicator, int ranks, NcclId id, int rank, void* config) = nullptr;
    NcclResult (*commFinalize)(void* communicator) = nullptr;
    NcclResult (*commDestroy)(void* communicator) = nullptr;
    NcclResult (*commAbort)(void* communicator) = nullptr;
    NcclResult (*commGetAsyncError)(void* communicator, NcclResult* state) = nullptr;
    const char* (*getErrorString)(NcclResult result) = nullptr;
    const char* (*getLastError)(void* communicator) = nullptr;
    NcclResult (*groupStart)() = nullptr;
    NcclResult (*groupEnd)() = nullptr;
    NcclResult (*send)(const void* buffer, std::size_t count, int type, int peer, void* communicator, void* stream) = nullptr;
    NcclResult (*recv)(void* buffer, std::size_t count, int type, int peer, void* communicator, void* stream) = nullptr;
    NcclResult (*allReduce)(const void* from, void* to, std::size_t count, int type, int operation, void* communicator, void* stream) = nullptr;
};

struct NcclLibrary {
    NcclApi api;
    std::string file;    // where it was found
    std::string version; // "2.28.9"
};

struct NcclPlaces {
    std::string name = "libnccl.so.2";
    std::vector<std::string> files = {}; // tried in turn where there is none of that name
};

// The library stays loaded: it keeps threads. Errors say where it was looked for, which function is missing, and what to do.
Expected<NcclLibrary> loadNccl(const NcclPlaces& places = {});

Expected<NcclId> newNcclId(const NcclApi& api);

} // namespace stagecraft::runtime
