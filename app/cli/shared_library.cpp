// SPDX-License-Identifier: Apache-2.0
#include "app/cli/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace stagecraft::cli {

SharedLibrary::SharedLibrary(const std::string& nameOrPath, Symbols symbols)
    : handle_(::dlopen(nameOrPath.c_str(), RTLD_LAZY | (symbols == Symbols::Own ? RTLD_LOCAL : RTLD_GLOBAL)))
{
    if (handle_ != nullptr) return;
    const char* error = ::dlerror();
    reason_ = error != nullptr ? error : nameOrPath + " cannot be opened";
}

std::filesystem::path SharedLibrary::file() const
{
    link_map* map = nullptr;
    if (handle_ == nullptr || ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
    std::error_code unknown;
    std::filesystem::path path = std::filesystem::canonical(map->l_name, unknown);
    return unknown ? std::filesystem::path(map->l_name) : path;
}

void* SharedLibrary::symbol(const char* name) const { return handle_ != nullptr ? ::dlsym(handle_, name) : nullptr; }

} // namespace stagecraft::cli
