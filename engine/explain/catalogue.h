// SPDX-License-Identifier: Apache-2.0
//
// All schedules as a page of Markdown, each with a small SVG picture, its idea, cost, memory, conditions and names: written from the
// families' own words and from what the simulator gives for one example. docs/schedules.md is such a page.
//
//   Catalogue catalogue = makeCatalogue({.pictures = "pictures/schedules"});
//   writeWholeFile("docs/schedules.md", catalogue.page);
//   for (const CataloguePicture& picture : catalogue.pictures) writeWholeFile("docs/pictures/schedules/" + picture.file, picture.svg);
#pragma once

#include "traces/base/expected.h"

#include <string>
#include <vector>

namespace stagecraft::engine {

struct CatalogueOptions {
    std::string pictures = "pictures/schedules"; // folder, as the page links to it
    int ranks = 4;
    int microbatches = 8;
};

struct CataloguePicture {
    std::string file; // "1f1b.svg"
    std::string svg;
};

struct Catalogue {
    std::string page;
    std::vector<CataloguePicture> pictures;
};

Catalogue makeCatalogue(const CatalogueOptions& options = {});

} // namespace stagecraft::engine
