// SPDX-License-Identifier: Apache-2.0
//
// Messages over MPI's point-to-point operations. A channel is a tag: MPI keeps the order of messages of one sender, tag and
// communicator (MPI 4.0, 3.5), which is all that the post office asks for. Every send is non-blocking, so no order of sends and
// receives can deadlock.
#include "engine/transport/mpi/mpi_module.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace stagecraft::runtime {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30; // MPI counts in int

std::string textOf(int error)
{
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    return MPI_Error_string(error, text, &length) == MPI_SUCCESS ? std::string(text, static_cast<std::size_t>(length)) : "error " + std::to_string(error);
}

void check(int error, const char* doing)
{
    if (error != MPI_SUCCESS) throw std::runtime_error(std::string("MPI cannot ") + doing + ": " + textOf(error));
}

class MpiPort final : public MessagePort {
public:
    MpiPort()
    {
        // Whatever is said outside of this program on the world's communicator cannot be taken for ours.
        check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "make a communicator");
        check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "report errors");
        check(MPI_Comm_rank(comm_, &rank_), "tell the rank");
        check(MPI_Comm_size(comm_, &size_), "tell the number of processes");
    }

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return size_; }

    Ticket send(int to, Channel channel, std::span<const std::byte> bytes) override
    {
        return inPieces(bytes, [&](std::span<const std::byte> piece, MPI_Request& request) {
            check(MPI_Isend(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, to, tagOf(channel), comm_, &request), "send");
        });
    }

    Ticket receive(int from, Channel channel, std::span<std::byte> room) override
    {
        return inPieces(room, [&](std::span<std::byte> piece, MPI_Request& request) {
            check(MPI_Irecv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, from, tagOf(channel), comm_, &request), "receive");
        });
    }

    bool done(Ticket ticket) override
    {
        const auto under = underWay_.find(ticket);
        int all = 0;
        check(MPI_Testall(static_cast<int>(under->second.size()), under->second.data(), &all, MPI_STATUSES_IGNORE), "finish a transfer");
        if (all != 0) underWay_.erase(under);
        return all != 0;
    }

    std::optional<Arriving> arriving() override
    {
        int there = 0;
        MPI_Status status{};
        check(MPI_Iprobe(MPI_ANY_SOURCE, tagOf(Channel::Heads), comm_, &there, &status), "look for messages");
        if (there == 0) return std::nullopt;
        int bytes = 0;
        check(MPI_Get_count(&status, MPI_BYTE, &bytes), "measure a message");
        return Arriving{status.MPI_SOURCE, static_cast<std::size_t>(bytes)};
    }

    void finish() override
    {
        MPI_Comm_free(&comm_);
        MPI_Finalize();
    }

private:
    static int tagOf(Channel channel) { return channel == Channel::Heads ? 1 : 2; }

    template <class Bytes, class Begin>
    Ticket inPieces(Bytes bytes, Begin&& begin)
    {
        std::vector<MPI_Request>& requests = underWay_[++last_];
        do {
            const std::size_t size = std::min(bytes.size(), kPiece);
            begin(bytes.first(size), requests.emplace_back(MPI_REQUEST_NULL));
            bytes = bytes.subspan(size);
        } while (!bytes.empty());
        return last_;
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
    std::unordered_map<Ticket, std::vector<MPI_Request>> underWay_;
    Ticket last_ = 0;
};

} // namespace

} // namespace stagecraft::runtime

extern "C" stagecraft::runtime::MessagePort* stagecraftOpenMpiPort(char* reason, std::size_t reasonSize)
{
    try {
        // One thread at a time, whichever it is.
        int level = 0;
        stagecraft::runtime::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "start");
        if (level < MPI_THREAD_SERIALIZED) throw std::runtime_error("this MPI cannot be called by more than the first thread");
        return new stagecraft::runtime::MpiPort();
    } catch (const std::exception& error) {
        std::snprintf(reason, reasonSize, "%s", error.what());
        return nullptr;
    }
}

extern "C" const char* stagecraftMpiVersion()
{
#if defined(OPEN_MPI)
    static const std::string version =
        "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) + "." + std::to_string(OMPI_MINOR_VERSION) + "." + std::to_string(OMPI_RELEASE_VERSION);
#else
    static const std::string version = "MPI " + std::to_string(MPI_VERSION) + "." + std::to_string(MPI_SUBVERSION);
#endif
    return version.c_str();
}
