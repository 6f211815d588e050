// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_names.h"

#include <algorithm>
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

std::string callName(std::string_view cupti)
{
    cupti.remove_prefix(std::min(cupti.find_first_not_of('_'), cupti.size()));
    const std::size_t version = cupti.rfind("_v");
    if (version != std::string_view::npos && cupti.find_first_not_of("0123456789", version + 2) == std::string_view::npos) {
        cupti = cupti.substr(0, version);
    }
    if (cupti.ends_with("_ptsz")) cupti.remove_suffix(5); // the same call, of a thread's own default stream
    return std::string(cupti);
}

NameId ActivityNames::ofAddress(const char* address)
{
    if (address == nullptr) return {};
    const auto [known, isNew] = byAddress_.try_emplace(address);
    if (isNew) known->second = ofText(read_(address));
    return known->second;
}

NameId ActivityNames::ofText(std::string text)
{
    const auto [known, isNew] = byText_.try_emplace(text, NameId{byText_.size() + 1});
    if (isNew) fresh_.push_back(std::move(text));
    return known->second;
}

std::vector<std::string> ActivityNames::takeNew() { return std::exchange(fresh_, {}); }

} // namespace stagecraft::runtime
