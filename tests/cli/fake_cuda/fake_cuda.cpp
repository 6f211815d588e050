// SPDX-License-Identifier: Apache-2.0
//
// A driver with two GPUs, as far as `doctor` asks it. It tells the second one's compute capability to nobody.
#include <cstddef>
#include <cstdio>

extern "C" {

int cuDriverGetVersion(int* version)
{
    *version = 13000;
    return 0;
}

int cuInit(unsigned) { return 0; }

int cuDeviceGetCount(int* count)
{
    *count = 2;
    return 0;
}

int cuDeviceGetName(char* name, int size, int device)
{
    std::snprintf(name, static_cast<std::size_t>(size), "Fake GPU %c", "AB"[device]);
    return 0;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device)
{
    *bytes = std::size_t{8} << (30 + device);
    return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device)
{
    if (device != 0 || (attribute != 75 && attribute != 76)) return 1;
    *value = attribute == 75 ? 9 : 0;
    return 0;
}

} // extern "C"
