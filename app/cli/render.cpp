// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sibling.h"
#include "app/cli/verbs.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>
#include <unistd.h>

namespace stagecraft::cli {

namespace {

struct Options {
    std::string source;
    std::string out;
    // Handed on as they are written; the desktop program judges them.
    std::string width;
    std::string scale;
    std::string theme;
    std::string step;
    std::string from;
    std::string to;
};

bool isPicture(std::string name)
{
    name = traces::lowered(std::move(name));
    return name.ends_with(".png") || name.ends_with(".svg") || name.ends_with(".pdf");
}

// The program's first argument is the name it was called by: its messages bear this one's.
std::vector<std::string> desktopArguments(const Options& options)
{
    std::vector<std::string> arguments{"stagecraft-cli", "render"};
    const std::pair<const char*, const std::string*> handedOn[] = {{"--width", &options.width}, {"--scale", &options.scale}, {"--theme", &options.theme},
                                                                   {"--step", &options.step},   {"--from", &options.from},   {"--to", &options.to}};
    for (const auto& [name, value] : handedOn)
        if (!value->empty()) arguments.push_back(fmt::format("{}={}", name, *value));
    arguments.insert(arguments.end(), {"--", options.source, options.out}); // a name may begin with a dash
    return arguments;
}

// The picture is drawn by the desktop program, which takes this process over and answers for the rest.
int render(const Options& options)
{
    if (!isPicture(options.out))
        return wrongUse(
            Error{fmt::format("{}: a picture is written as .png, .svg or .pdf; choose the file's name so", options.out)});
    const auto program = siblingProgram("stagecraft");
    if (!program) {
        return failed(Error{fmt::format("pictures are drawn by the desktop program, and {} is not there; build with Qt 6 "
                                        "(-DSTAGECRAFT_WITH_UI=ON), or convert the trace to .json and open that in a viewer",
                                        (programFolder() / "stagecraft").string())});
    }
    std::vector<std::string> arguments = desktopArguments(options);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(program->c_str(), pointers.data());
    return failed(Error{fmt::format("{} cannot be started: {}", program->string(), std::strerror(errno))});
}

} // namespace

void addRender(CLI::App& program, Work& work)
{
    CLI::App& verb = addVerb(program, "render", "Draw the timeline of a plan or trace into a picture; needs no display",
                             "stagecraft-cli render run.strace timeline.png\n"
                             "  stagecraft-cli render run.strace step2.svg --step 2 --from 1ms --to 4ms --width 1200");
    const auto options = std::make_shared<Options>();
    verb.add_option("SOURCE", options->source, "Plan file, preset or trace")->type_name("PLAN|TRACE")->required();
    verb.add_option("OUT", options->out, "Picture to write: .png, .svg or .pdf")->required();
    verb.add_option("--width", options->width, "Width of the picture; 1600 unless given");
    verb.add_option("--scale", options->scale, "Pixels of a PNG per unit of its width; 2, or less where that is too large");
    verb.add_option("--theme", options->theme, "light or dark");
    verb.add_option("--step", options->step, "Draw this step alone, from 0");
    verb.add_option("--from", options->from, "Leave out what is before this time (1.5ms), counted from the start of the step, or of all");
    verb.add_option("--to", options->to, "Leave out what is after this time");
    verb.callback([options, &work] { work = [options] { return render(*options); }; });
}

} // namespace stagecraft::cli
