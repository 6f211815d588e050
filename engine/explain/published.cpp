// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/published.h"

#include "engine/explain/published_tables.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace stagecraft::engine {
namespace {

struct Entry {
    PublishedTable (*head)();
    void (*fill)(PublishedTable&);
};

constexpr std::array<Entry, 3> kEntries{{
    {&zeroBubbleTable, &fillZeroBubble},
    {&dualPipeTable, &fillDualPipe},
    {&latencyTable, &fillLatency},
}};

} // namespace

std::vector<PublishedTable> publishedTables()
{
    std::vector<PublishedTable> tables;
    for (const Entry& entry : kEntries) tables.push_back(entry.head());
    return tables;
}

traces::Expected<PublishedTable> reproduce(std::string_view name)
{
    std::string known;
    for (const Entry& entry : kEntries) {
        PublishedTable table = entry.head();
        known += (known.empty() ? "" : ", ") + table.name;
        if (table.name != name) continue;
        entry.fill(table);
        return table;
    }
    return traces::Error{fmt::format("\"{}\" is none of the published tables; there are {}", name, known)};
}

bool agree(const PublishedValue& value, int digits)
{
    return std::abs(value.ours - value.published) <= 0.5 * std::pow(10.0, -digits) * (1 + 1e-9);
}

} // namespace stagecraft::engine
