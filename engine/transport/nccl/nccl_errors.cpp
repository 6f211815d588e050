// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/nccl_errors.h"

#include <nccl.h>

namespace stagecraft::runtime {

static_assert(kNcclSuccess == ncclSuccess && kNcclInProgress == ncclInProgress);

NcclMeaning ncclMeaning(NcclResult result)
{
    switch (static_cast<ncclResult_t>(result)) {
    case ncclSuccess: return {"nothing is wrong", ""};
    case ncclUnhandledCudaError:
        return {"a call of CUDA failed in it",
                "There may be no GPU, no driver or too old a one, or no memory left on the GPU: stagecraft-cli doctor tells"};
    case ncclSystemError:
        return {"a call of the system failed in it",
                "Network interfaces (NCCL_SOCKET_IFNAME), shared memory (/dev/shm) or limits of open files are what it is most often; NCCL_DEBUG=WARN "
                "prints which call"};
    case ncclInternalError:
        return {"it found a fault in itself, or memory that was overwritten", "NCCL_DEBUG=INFO prints more; two versions of NCCL in one process do this too"};
    case ncclInvalidArgument: return {"an argument is not allowed", "That is a fault of this program: please report it with the output of NCCL_DEBUG=WARN"};
    case ncclInvalidUsage:
        return {"it was used in a way that it does not allow",
                "Two ranks on one GPU, or ranks that issue different operations, are what it is most often; NCCL_DEBUG=WARN prints which rule"};
    case ncclRemoteError:
        return {"another rank has ended, or the connection to it broke", "The first error is that rank's: look at its output"};
    case ncclInProgress: return {"what it was asked for before is still under way", "That is a fault of this program: please report it"};
    case ncclNumResults: break;
    }
    return {"it gives a result that this build does not know", "It is newer than this build; NCCL_DEBUG=WARN prints more"};
}

Error ncclError(const NcclApi& api, std::string_view doing, NcclResult result)
{
    const NcclMeaning meaning = ncclMeaning(result);
    std::string text = "NCCL cannot " + std::string(doing) + ": " + std::string(meaning.what) + " (";
    const char* own = api.getErrorString(result);
    text += own != nullptr ? own : "result " + std::to_string(result);
    // it looks at no communicator for this (init.cc), and one that was ended is no more
    const char* last = api.getLastError(nullptr);
    if (last != nullptr && last[0] != '\0') text += "; last: " + std::string(last);
    text += ")";
    if (!meaning.remedy.empty()) text += ". " + std::string(meaning.remedy);
    return Error{std::move(text)};
}

} // namespace stagecraft::runtime
