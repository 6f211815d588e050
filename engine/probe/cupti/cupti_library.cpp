// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/cupti_library.h"

#include "engine/probe/cupti/cupti_api_cupti.h"
#include "engine/probe/cupti/cupti_error.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace stagecraft::runtime {

using traces::Error;
using traces::Expected;

namespace {

// The layouts of records are those of this release; later ones of the same release line only add behind them.
constexpr std::uint32_t kReleaseLine = CUPTI_API_VERSION / 10'000;

void* load(const CuptiPlace& place, std::string& why)
{
    if (void* loaded = dlopen(place.name.c_str(), RTLD_NOLOAD | RTLD_NOW)) return loaded;
    if (void* found = dlopen(place.name.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    why = dlerror();
    if (place.path.empty()) return nullptr;
    void* given = dlopen(place.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (given == nullptr) why += fmt::format("; {}", dlerror());
    return given;
}

std::string fileOf(const void* function, const std::string& otherwise)
{
    Dl_info info{};
    return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? std::string(info.dli_fname) : otherwise;
}

template <class Function>
bool find(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

} // namespace

Expected<std::shared_ptr<const CuptiLibrary>> CuptiLibrary::open(const CuptiPlace& place)
{
    std::string why;
    void* library = load(place, why);
    if (library == nullptr) {
        return Error{fmt::format("CUPTI cannot be loaded: {}. It comes with LibTorch for CUDA (wheel nvidia-cuda-cupti)", why)};
    }
    CuptiApi api;
    const char* missing = nullptr;
#define STAGECRAFT_CUPTI_FIND(member, name) \
    if (!find(library, #name, api.member)) missing = #name;
    STAGECRAFT_CUPTI_FUNCTIONS(STAGECRAFT_CUPTI_FIND)
#undef STAGECRAFT_CUPTI_FIND
    if (missing != nullptr) {
        return Error{fmt::format("'{}' is not a CUPTI that can be used: it has no function {}. Take the one that was installed with LibTorch",
                                 place.path.empty() ? place.name : place.path, missing)};
    }
    std::string origin = fileOf(reinterpret_cast<const void*>(api.getVersion), place.name);
    std::uint32_t version = 0;
    if (const CUptiResult result = api.getVersion(&version); result != CUPTI_SUCCESS) return cuptiError("CUPTI's version", result);
    if (version / 10'000 != kReleaseLine) {
        return Error{fmt::format("'{}' has CUPTI's interface {}, the program knows that of CUDA {}. Take the one that was installed with "
                                 "LibTorch: another may lie before it in LD_LIBRARY_PATH",
                                 origin, version, kReleaseLine)};
    }
    return std::shared_ptr<const CuptiLibrary>(std::make_shared<CuptiLibrary>(api, std::move(origin), version));
}

CuptiLibrary::CuptiLibrary(const CuptiApi& api, std::string origin, std::uint32_t version)
    : api_(std::make_unique<CuptiApi>(api)), origin_(std::move(origin)), version_(version)
{
}

CuptiLibrary::~CuptiLibrary() = default;

} // namespace stagecraft::runtime
