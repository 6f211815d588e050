// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plan_files.h"

#include <utility>

namespace stagecraft::engine {
namespace {

namespace fs = std::filesystem;

template <class Change>
void forEachPath(Plan& plan, Change&& change)
{
    for (Layer& layer : plan.model.layers)
        if (auto* scripted = std::get_if<TorchScript>(&layer); scripted && !scripted->file.empty()) change(scripted->file);
}

fs::path wholeFolder(const fs::path& folder)
{
    std::error_code ignored;
    const fs::path whole = fs::absolute(folder.empty() ? fs::path(".") : folder, ignored);
    return whole.lexically_normal();
}

} // namespace

Plan withWholePaths(Plan plan, const fs::path& folder)
{
    const fs::path whole = wholeFolder(folder);
    forEachPath(plan, [&](std::string& path) { path = (whole / path).lexically_normal().string(); });
    return plan;
}

Plan withPathsSeenFrom(Plan plan, const fs::path& folder)
{
    const fs::path whole = wholeFolder(folder);
    forEachPath(plan, [&](std::string& path) {
        const fs::path seen = fs::path(path).lexically_relative(whole);
        if (!seen.empty() && *seen.begin() != "..") path = seen.string();
    });
    return plan;
}

} // namespace stagecraft::engine
