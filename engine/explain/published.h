// SPDX-License-Identifier: Apache-2.0
//
// Published tables, each value beside what our schedules and our simulator give for the published inputs. A check for whoever
// wants to trust the simulator, and for us.
//
//   for (const PublishedTable& table : publishedTables()) list(table.name, table.title);
//   PublishedTable table = reproduce("zero-bubble").value();
#pragma once

#include "traces/base/expected.h"

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

struct PublishedValue {
    double published = 0;
    double ours = 0;
};

struct PublishedRow {
    std::string label;
    std::vector<PublishedValue> values; // one per column
};

struct PublishedTable {
    std::string name;                 // "zero-bubble", the word of the command line
    std::string title;
    std::string source;               // paper and table
    std::string quantity;             // what the values are, and how many digits were published
    std::vector<std::string> columns; // schedules, with the rule where there are several
    std::vector<std::string> notes;   // what the numbers rest on, a sentence each
    int digits = 4;                   // behind the point
    std::vector<PublishedRow> rows;
};

// All that reproduce() knows, without rows.
std::vector<PublishedTable> publishedTables();

// Simulates every row. An error where the name is not known.
traces::Expected<PublishedTable> reproduce(std::string_view name);

// Whether the two agree in the digits that were published.
bool agree(const PublishedValue& value, int digits);

} // namespace stagecraft::engine
