// SPDX-License-Identifier: Apache-2.0
//
// schedule_grid FOLDER: writes many schedules in one process, for a judge. Reads lines "family p v m"; of the k-th line come
// FOLDER/k.csv, FOLDER/k.comms.csv (lowered) and FOLDER/k.sharded.csv (with gathered weights, lowered), or FOLDER/k.refused with the reason.
#include "engine/schedule/lower.h"
#include "engine/schedule/shard.h"
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
    const traces::Expected<engine::Schedule> sharded = engine::lowerCommunication(engine::shard(plain.value(), engine::Sharding::Zero3));
    if (!sharded.ok()) return sharded.error();
    const std::pair<const char*, const engine::Schedule*> files[]{
        {".csv", &plain.value()}, {".comms.csv", &lowered.value()}, {".sharded.csv", &sharded.value()}};
    for (const auto& [ending, schedule] : files)
        if (traces::Expected<void> written = traces::writeWholeFile(stem + ending, engine::toText(*schedule)); !written.ok()) return written;
    return {};
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
