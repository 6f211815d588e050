// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/kernel_names.h"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <utility>

namespace stagecraft::runtime {

std::string demangled(const char* name)
{
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
    return status == 0 && text ? std::string(text.get()) : std::string(name);
}

NameId KernelNames::idOf(const char* address)
{
    if (address == nullptr) return {};
    const auto [known, isNew] = ids_.try_emplace(address);
    if (!isNew) return known->second;
    std::string text = read_(address);
    const auto [same, isNewText] = byText_.try_emplace(text, NameId{byText_.size() + 1});
    if (isNewText) fresh_.push_back(std::move(text));
    return known->second = same->second;
}

std::vector<std::string> KernelNames::takeNew() { return std::exchange(fresh_, {}); }

} // namespace stagecraft::runtime
