// SPDX-License-Identifier: Apache-2.0
//
// MPI, by the module that links it: this program does not.
#include "app/cli/findings.h"
#include "app/cli/shared_library.h"
#include "app/cli/sibling.h"
#include "engine/transport/mpi/mpi_module.h"

namespace stagecraft::cli {

std::string noMpiModule()
{
    return "this build has no MPI: install libopenmpi-dev and openmpi-bin, and build again with -DSTAGECRAFT_WITH_MPI=ON";
}

Finding findMpi()
{
    Finding finding{.key = "mpi", .title = "MPI", .disables = "mode processes under mpirun; under torchrun it has a way of its own, threads and emulated are not affected"};
    const std::filesystem::path file = programFolder() / runtime::kMpiModule;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        finding.detail = noMpiModule();
        return finding;
    }
    const SharedLibrary module(file.string(), SharedLibrary::Symbols::Shared);
    const auto version = module.function<runtime::MpiVersion>(runtime::kMpiVersion);
    if (version == nullptr) {
        finding.detail = module.reason() + " (openmpi-bin brings it)";
        return finding;
    }
    return {.key = "mpi", .title = "MPI", .found = true, .detail = version()};
}

} // namespace stagecraft::cli
