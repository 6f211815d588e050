// SPDX-License-Identifier: Apache-2.0
//
// stagecraft-cli: everything but the window, for scripts, servers and tests.
#include "app/cli/verbs.h"
#include "app/keep_freed_memory.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace stagecraft::cli;

// Parses the line and returns the exit code where that is all there is to do (help, wrong use).
std::optional<int> parse(CLI::App& program, int argc, char** argv)
{
    try {
        program.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::Success& success) { // --help, --version
        return program.exit(success);
    } catch (const CLI::ParseError& error) {
        const std::vector<CLI::App*> verbs = program.get_subcommands();
        if (verbs.empty()) return wrongUse(Error{"which verb? stagecraft-cli --help lists them"});
        return wrongUse(Error{std::string(error.what()) + "\nTry: stagecraft-cli " + verbs.front()->get_name() + " --help"});
    }
}

// An empty argument is an empty variable of a shell, never a choice: it would pass as if it were not given.
void refuseEmptyArguments(CLI::App& program)
{
    const CLI::Validator filled([](std::string& text) { return text.empty() ? "is empty; give it a value or leave it out" : std::string{}; },
                                "");
    for (CLI::App* verb : program.get_subcommands({}))
        for (CLI::Option* option : verb->get_options({}))
            if (option->get_items_expected_max() > 0) option->check(filled);
}

int run(int argc, char** argv)
{
    CLI::App program("Stagecraft's command line: simulates, runs and analyses pipeline-parallel training.",
                     "stagecraft-cli");
    program.set_version_flag("--version", "stagecraft-cli " STAGECRAFT_VERSION);
    program.require_subcommand(1);
    program.footer(
        "PLAN is a plan file or the name of a preset (stagecraft-cli list plans).\n"
        "Exit codes: 0 done; 1 the work failed, the reason is on standard error; 2 wrong use.\n"
        "Example:\n  stagecraft-cli simulate --schedule 1f1b --ranks 4 --microbatches 8 --forward 1ms --backward 2ms");

    Work work;
    for (const auto add : {addSimulate, addSweep, addSchedule, addValidate, addRun, addAnalyze, addCompare, addWhatIf, addRender, addReproduce, addConvert,
                           addDoctor, addList, addCatalogue, addBench, addWorker}) {
        add(program, work);
    }
    refuseEmptyArguments(program);
    program.get_formatter()->label("SUBCOMMAND", "VERB");
    const bool known = argc < 2 ||
                       !program.get_subcommands([&](const CLI::App* verb) { return verb->check_name(argv[1]); }).empty() ||
                       program.get_option_no_throw(argv[1]) != nullptr;
    if (!known) return wrongUse(Error{std::string("'") + argv[1] + "' is no verb; stagecraft-cli --help lists them"});
    if (const std::optional<int> code = parse(program, argc, argv)) return *code;
    return work();
}

} // namespace

int main(int argc, char** argv)
{
    stagecraft::keepFreedMemory();
    // Of eight queues, as CUDA has them otherwise, ranks that share a GPU would have some in common, and one would wait for another's stream.
    // Before there are threads, and before CUDA is opened.
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return failed(Error{"there is not enough memory for this; take fewer ranks, micro-batches or steps"});
    } catch (const std::exception& error) {
        return failed(Error{std::string("an error that should have been caught earlier: ") + error.what()});
    }
}
