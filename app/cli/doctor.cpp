// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"
#include "app/cli/findings.h"
#include "app/cli/live_engine.h"
#include "app/cli/shared_library.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft::cli {

namespace {

Json textOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json gpusJson(const std::vector<FoundGpu>& gpus)
{
    Json list = Json::array();
    for (const FoundGpu& gpu : gpus)
        list.push_back({{"name", gpu.name}, {"memory_bytes", gpu.memory}, {"compute_capability", textOrNull(gpu.computeCapability)}});
    return list;
}

Json findingsJson(const std::vector<Finding>& findings)
{
    Json json = Json::object();
    for (const Finding& finding : findings) {
        json[finding.key] = {{"found", finding.found},
                             {"version", finding.found ? textOrNull(finding.detail) : Json()},
                             {"reason", finding.found ? Json() : textOrNull(finding.detail)},
                             {"disables", textOrNull(finding.disables)}};
        if (finding.key == kGpusKey) json[finding.key]["list"] = gpusJson(finding.gpus);
    }
    return json;
}

std::string findingsText(const std::vector<Finding>& findings)
{
    Table table({{""}, {""}, {""}});
    for (const Finding& finding : findings) table.add({finding.title, finding.found ? "found" : "missing", finding.detail});
    std::string text = table.text(terminalWidth());
    text.erase(0, text.find('\n') + 1); // this table has no titles
    // what several of them limit is said once
    std::vector<std::pair<std::string, std::string>> limits; // titles, what they disable
    for (const Finding& finding : findings) {
        if (finding.disables.empty()) continue;
        const auto known =
            std::find_if(limits.begin(), limits.end(), [&](const auto& limit) { return limit.second == finding.disables; });
        if (known == limits.end()) limits.emplace_back(finding.title, finding.disables);
        else known->first += ", " + finding.title;
    }
    if (!limits.empty()) text += "\nWhat that limits:\n";
    for (const auto& [titles, disables] : limits) text += fmt::format("  {}: {}\n", titles, disables);
    return text;
}

} // namespace

std::vector<Finding> examineMachine()
{
    return {findCpu(),  findCores(), findMemory(), findLibTorch(), findCuda(), findCupti(),
            findNccl(), findGpus(),  findMpi(),    findQt(),     findDesktop(),  findFonts()};
}

void addDoctor(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "doctor", "Tell what is on this machine, and what is disabled by what is not",
                             "stagecraft-cli doctor");
    const auto json = std::make_shared<bool>(false);
    addJsonFlag(verb, *json);
    verb.callback([json, &work] {
        work = [json] {
            // LibTorch tells more about itself once it is loaded; where that fails, this program says so
            if (SharedLibrary(libTorchBuild().library.string()).opened()) static_cast<void>(enterLiveEngine());
            const std::vector<Finding> findings = examineMachine();
            return print(*json ? jsonText(findingsJson(findings)) : findingsText(findings));
        };
    });
}

} // namespace stagecraft::cli
