// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/published.h"

#include "app/cli/command.h"
#include "app/cli/figures_json.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"

#include <fmt/format.h>

#include <memory>

namespace stagecraft::cli {

namespace {

using engine::PublishedTable;

struct Options {
    std::string name;
    bool json = false;
};

Json tableJson(const PublishedTable& table)
{
    Json rows = Json::array();
    for (const engine::PublishedRow& row : table.rows) {
        Json values = Json::array();
        for (std::size_t c = 0; c < row.values.size(); ++c)
            values.push_back({{"column", table.columns[c]},
                              {"published", row.values[c].published},
                              {"ours", row.values[c].ours},
                              {"agrees", engine::agree(row.values[c], table.digits)}});
        rows.push_back({{"row", row.label}, {"values", std::move(values)}});
    }
    return {{"name", table.name},         {"title", table.title}, {"source", table.source}, {"quantity", table.quantity},
            {"digits", table.digits},     {"notes", table.notes}, {"rows", std::move(rows)}};
}

// "0.2431  0.2431" where they agree, with a mark where they do not.
std::string tableText(const PublishedTable& table)
{
    std::string text = fmt::format("{}\n{}\n{}: published, ours; * where they differ in the {} published\n\n", table.title, table.source,
                                   table.quantity, table.digits == 0 ? "whole numbers" : fmt::format("{} digits", table.digits));
    std::vector<Column> columns{{""}};
    for (const std::string& column : table.columns) columns.push_back({column, Align::Right});
    Table rows(std::move(columns));
    std::size_t values = 0;
    std::size_t agreeing = 0;
    for (const engine::PublishedRow& row : table.rows) {
        std::vector<std::string> cells{row.label};
        for (const engine::PublishedValue& value : row.values) {
            const bool agrees = engine::agree(value, table.digits);
            ++values;
            agreeing += agrees ? 1 : 0;
            cells.push_back(fmt::format("{:.{}f}  {:.{}f}{}", value.published, table.digits, value.ours, table.digits, agrees ? " " : "*"));
        }
        rows.add(std::move(cells));
    }
    text += rows.text() + fmt::format("\n  {} of {} agree\n", agreeing, values);
    for (const std::string& note : table.notes) text += "  " + note + "\n";
    return text;
}

int reproduce(const Options& options)
{
    const traces::Expected<PublishedTable> table = engine::reproduce(options.name);
    if (!table.ok()) return wrongUse(table.error()); // no such table
    return print(options.json ? jsonText(tableJson(table.value())) : tableText(table.value()));
}

std::string knownTables()
{
    std::vector<std::string> names;
    for (const PublishedTable& table : engine::publishedTables()) names.push_back(table.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

} // namespace

void addReproduce(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "reproduce", "A published table beside what the simulator gives for the same inputs",
                             "stagecraft-cli reproduce zero-bubble");
    const auto options = std::make_shared<Options>();
    verb.add_option("NAME", options->name, "Which table: " + knownTables())->required();
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return reproduce(*options); }; });
}

} // namespace stagecraft::cli
