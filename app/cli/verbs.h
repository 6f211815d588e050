// SPDX-License-Identifier: Apache-2.0
//
// The verbs of stagecraft-cli; each stands in a file of its name.
#pragma once

#include "app/cli/command.h"

namespace stagecraft::cli {

void addSimulate(CLI::App& program, Work& work);
void addSweep(CLI::App& program, Work& work);
void addSchedule(CLI::App& program, Work& work);
void addValidate(CLI::App& program, Work& work);
void addRun(CLI::App& program, Work& work);
void addAnalyze(CLI::App& program, Work& work);
void addRender(CLI::App& program, Work& work);
void addCompare(CLI::App& program, Work& work);
void addWhatIf(CLI::App& program, Work& work);
void addReproduce(CLI::App& program, Work& work);
void addConvert(CLI::App& program, Work& work);
void addDoctor(CLI::App& program, Work& work);
void addCatalogue(CLI::App& program, Work& work);
void addList(CLI::App& program, Work& work);
void addBench(CLI::App& program, Work& work);
void addWorker(CLI::App& program, Work& work);

} // namespace stagecraft::cli
