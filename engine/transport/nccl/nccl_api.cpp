// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/nccl_api.h"

#include "engine/transport/nccl/nccl_errors.h"

#include <nccl.h>

#include <type_traits>

#include <dlfcn.h>
#include <link.h>

namespace stagecraft::runtime {

namespace {

// What lets the table do without nccl.h: the same sizes, passed in the same way.
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId) && alignof(NcclId) == alignof(ncclUniqueId));
static_assert(std::is_trivially_copyable_v<NcclId>);
static_assert(sizeof(ncclResult_t) == sizeof(NcclResult) && sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int));
static_assert(sizeof(ncclComm_t) == sizeof(void*) && sizeof(cudaStream_t) == sizeof(void*));

constexpr const char* kBringIt = "the wheel nvidia-nccl-cu13 brings it; see docs/gpu.md";

struct Opened {
    void* handle = nullptr;
    std::string tried; // why there is none
};

Opened openLibrary(const NcclPlaces& places)
{
    Opened opened;
    if ((opened.handle = ::dlopen(places.name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) != nullptr) return opened;
    const auto open = [&](const std::string& name) {
        opened.handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (opened.handle != nullptr) return true;
        const char* reason = ::dlerror();
        opened.tried += (opened.tried.empty() ? "" : "; ") + (reason != nullptr ? std::string(reason) : name + " cannot be opened");
        return false;
    };
    if (open(places.name)) return opened;
    for (const std::string& file : places.files)
        if (open(file)) return opened;
    return opened;
}

std::string fileOf(void* handle, const std::string& otherwise)
{
    link_map* map = nullptr;
    return ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map->l_name[0] != '\0' ? map->l_name : otherwise;
}

// NCCL_VERSION()
std::string versionText(int code)
{
    const int patch = code % 100;
    const int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
    const int major = code >= 10000 ? code / 10000 : code / 1000;
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

} // namespace

Expected<NcclLibrary> loadNccl(const NcclPlaces& places)
{
    const Opened opened = openLibrary(places);
    if (opened.handle == nullptr) return Error{"NCCL cannot be used, the library is not there (" + opened.tried + "); " + kBringIt};
    NcclLibrary library{.api = {}, .file = fileOf(opened.handle, places.name), .version = {}};
    std::string missing;
    const auto find = [&](auto& function, const char* name) {
        void* symbol = ::dlsym(opened.handle, name);
        if (symbol == nullptr && missing.empty()) missing = name;
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    NcclApi& api = library.api;
    find(api.getVersion, "ncclGetVersion");
    find(api.getUniqueId, "ncclGetUniqueId");
    find(api.commInitRankConfig, "ncclCommInitRankConfig");
    find(api.commFinalize, "ncclCommFinalize");
    find(api.commDestroy, "ncclCommDestroy");
    find(api.commAbort, "ncclCommAbort");
    find(api.commGetAsyncError, "ncclCommGetAsyncError");
    find(api.getErrorString, "ncclGetErrorString");
    find(api.getLastError, "ncclGetLastError");
    find(api.groupStart, "ncclGroupStart");
    find(api.groupEnd, "ncclGroupEnd");
    find(api.send, "ncclSend");
    find(api.recv, "ncclRecv");
    find(api.allReduce, "ncclAllReduce");
    if (!missing.empty())
        return Error{"NCCL cannot be used, " + library.file + " has no " + missing + ": it is older than 2.14, the first whose calls need not block; " + kBringIt};
    int version = 0;
    if (const NcclResult asked = api.getVersion(&version); asked != ncclSuccess) return ncclError(api, "tell its version", asked);
    library.version = versionText(version);
    return library;
}

Expected<NcclId> newNcclId(const NcclApi& api)
{
    NcclId id;
    if (const NcclResult made = api.getUniqueId(&id); made != ncclSuccess) return ncclError(api, "make an id for the ranks to meet by", made);
    return id;
}

} // namespace stagecraft::runtime
