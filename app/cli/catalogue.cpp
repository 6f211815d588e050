// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/catalogue.h"

#include "app/cli/verbs.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace stagecraft::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPictures = "pictures/schedules"; // beside the page

int catalogue(const std::string& out)
{
    const fs::path folder = fs::path(out).parent_path();
    std::error_code error;
    if (!folder.empty() && !fs::is_directory(folder, error))
        return wrongUse(Error{fmt::format("{}: the folder {} does not exist; make it first", out, folder.string())});
    if (fs::is_directory(out, error)) return wrongUse(Error{fmt::format("{}: this is a folder; give a file's name", out)});
    const engine::Catalogue made = engine::makeCatalogue({.pictures = kPictures});
    const fs::path pictures = folder / kPictures;
    fs::create_directories(pictures, error);
    if (error) return failed(Error{fmt::format("cannot make the folder {}: {}", pictures.string(), error.message())});
    for (const engine::CataloguePicture& picture : made.pictures)
        if (auto saved = traces::writeWholeFile(pictures / picture.file, picture.svg); !saved.ok()) return failed(saved.error());
    if (auto saved = traces::writeWholeFile(out, made.page); !saved.ok()) return failed(saved.error());
    return print(fmt::format("{}: {} schedules, pictures in {}\n", out, made.pictures.size(), pictures.string()));
}

} // namespace

void addCatalogue(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "catalogue", "Write a page of all schedules, with pictures, figures, conditions and sources",
                             "stagecraft-cli catalogue docs/schedules.md");
    const auto out = std::make_shared<std::string>();
    verb.add_option("OUT", *out, "Markdown file to write; its pictures go to pictures/schedules beside it")->required();
    verb.callback([out, &work] { work = [out] { return catalogue(*out); }; });
}

} // namespace stagecraft::cli
