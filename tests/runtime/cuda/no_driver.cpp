// SPDX-License-Identifier: Apache-2.0
//
// What the dynamic linker takes for a driver, and CUDA does not.
extern "C" {
extern const int kNoDriver;
const int kNoDriver = 0;
}
