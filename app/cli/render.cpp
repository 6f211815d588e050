// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sibling.h"
#include "app/cli/verbs.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string source;
    std::string out;
};

// The picture is drawn by the desktop program, which takes this process over and answers for the rest.
int render(const Options& options)
{
    const bool known = options.out.ends_with(".png") || options.out.ends_with(".svg") || options.out.ends_with(".pdf");
    if (!known)
        return wrongUse(
            Error{fmt::format("{}: a picture is written as .png, .svg or .pdf; choose the file's name so", options.out)});
    const auto program = siblingProgram("stagecraft");
    if (!program) {
        return failed(Error{fmt::format("pictures are drawn by the desktop program, and {} is not there; build with Qt 6 "
                                        "(-DSTAGECRAFT_WITH_UI=ON), or convert the trace to .json and open that in a viewer",
                                        (programFolder() / "stagecraft").string())});
    }
    ::execl(program->c_str(), program->c_str(), "render", options.source.c_str(), options.out.c_str(),
            static_cast<char*>(nullptr));
    return failed(Error{fmt::format("{} cannot be started: {}", program->string(), std::strerror(errno))});
}

} // namespace

void addRender(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "render", "Draw the timeline of a plan or trace into a picture; needs no display",
                             "stagecraft-cli render run.strace timeline.png");
    const auto options = std::make_shared<Options>();
    verb.add_option("SOURCE", options->source, "Plan file, preset or trace")->type_name("PLAN|TRACE")->required();
    verb.add_option("OUT", options->out, "Picture to write: .png, .svg or .pdf")->required();
    verb.callback([options, &work] { work = [options] { return render(*options); }; });
}

} // namespace stagecraft::cli
