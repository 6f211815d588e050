// SPDX-License-Identifier: Apache-2.0
//
// What the module stagecraft_mpi offers. It is the only part that links MPI, and is opened where a run needs it: MPI costs start-up time
// and brings libraries of its own.
//
//   const SharedLibrary module(programFolder() / kMpiModule);
//   const auto open = module.function<OpenMpiPort>(kOpenMpiPort);
//   std::unique_ptr<MessagePort> port(open(reason, sizeof reason));      // null: `reason` says why
#pragma once

#include "engine/transport/message_port.h"

namespace stagecraft::runtime {

inline constexpr const char* kMpiModule = "stagecraft_mpi.so";
inline constexpr const char* kOpenMpiPort = "stagecraftOpenMpiPort";
inline constexpr const char* kMpiVersion = "stagecraftMpiVersion";

// Once in a process, which mpirun has started.
using OpenMpiPort = MessagePort*(char* reason, std::size_t reasonSize);
// "Open MPI 4.1.4"
using MpiVersion = const char*();

} // namespace stagecraft::runtime
