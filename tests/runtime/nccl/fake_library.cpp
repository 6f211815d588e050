// SPDX-License-Identifier: Apache-2.0
//
// A shared library with NCCL's names, for the tests of how it is opened. With STAGECRAFT_OLD_NCCL it lacks what 2.14 brought.
#include <cstddef>

#define FAKE(name) \
    extern "C" int name() { return 0; }

extern "C" int ncclGetVersion(int* version)
{
    *version = 22809;
    return 0;
}
extern "C" const char* ncclGetErrorString(int) { return "a fake's error"; }
extern "C" const char* ncclGetLastError(void*) { return ""; }
FAKE(ncclGetUniqueId)
#ifndef STAGECRAFT_OLD_NCCL
FAKE(ncclCommInitRankConfig)
FAKE(ncclCommFinalize)
#endif
FAKE(ncclCommDestroy)
FAKE(ncclCommAbort)
FAKE(ncclCommGetAsyncError)
FAKE(ncclGroupStart)
FAKE(ncclGroupEnd)
FAKE(ncclSend)
FAKE(ncclRecv)
FAKE(ncclAllReduce)
