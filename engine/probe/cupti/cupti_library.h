// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's library, found at run time. LibTorch of a CUDA wheel has loaded one already, and there must be only one in a process:
// that one is taken, else the one the system finds by its name, else the one at a path. It is never closed: its threads go on.
// Shared by all who call it; any thread.
//
//   const auto library = CuptiLibrary::open();
//   if (!library.ok()) show(library.error().message);   // no CUPTI here, and why
#pragma once

#include "traces/base/expected.h"

#include <cstdint>
#include <memory>
#include <string>

namespace stagecraft::runtime {

struct CuptiApi;

struct CuptiPlace {
    std::string name = "libcupti.so.13"; // as a loaded library is named
    std::string path = {};               // tried last; none: not at all
};

class CuptiLibrary {
public:
    static traces::Expected<std::shared_ptr<const CuptiLibrary>> open(const CuptiPlace& place = {});

    // With functions of one's own: for tests.
    CuptiLibrary(const CuptiApi& api, std::string origin, std::uint32_t version);
    ~CuptiLibrary();
    CuptiLibrary(const CuptiLibrary&) = delete;
    CuptiLibrary& operator=(const CuptiLibrary&) = delete;

    [[nodiscard]] const CuptiApi& api() const { return *api_; }
    [[nodiscard]] const std::string& origin() const { return origin_; } // the file it was loaded from
    [[nodiscard]] std::uint32_t version() const { return version_; }    // 130001 is that of CUDA 13.0 Update 1

private:
    std::unique_ptr<const CuptiApi> api_;
    std::string origin_;
    std::uint32_t version_ = 0;
};

} // namespace stagecraft::runtime
