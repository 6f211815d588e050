// SPDX-License-Identifier: Apache-2.0
//
// schedule_grid FOLDER: writes many schedules in one process, for a judge. Reads lines "family p v m"; of the k-th line come
// FOLDER/k.csv and FOLDER/k.comms.csv (lowered), or FOLDER/k.refused with the reason.
#include "engine/schedule/lower.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <iostream>

using namespace stagecraft;

namespace {

traces::Expected<void> write(const std::string& stem, const engine::ScheduleRequest& request)
{
    const traces::Expected<engine::Schedule> plain = engine::generate(request);
    if (!plain.ok()) return traces::writeWholeFile(stem + ".refused", plain.error().message);
    const traces::Expected<engine::Schedule> lowered = engine::lowerCommunication(plain.value());
    if (!lowered.ok()) return lowered.error();
    traces::Expected<void> written = traces::writeWholeFile(stem + ".csv", engine::toText(plain.value()));
    return written.ok() ? traces::writeWholeFile(stem + ".comms.csv", engine::toText(lowered.value())) : written;
}

} // namespace

int main(int count, char** arguments)
{
    if (count != 2) return 2;
    engine::ScheduleRequest request;
    for (int k = 0; std::cin >> request.name >> request.ranks >> request.chunks >> request.microbatches; ++k) {
        const traces::Expected<void> written = write(fmt::format("{}/{}", arguments[1], k), request);
        if (!written.ok()) {
            std::cerr << request.name << ": " << written.error().message << '\n';
            return 1;
        }
    }
    return std::cin.eof() ? 0 : 1;
}
