#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# module_opens.sh CLI ENVIRONMENT SITE_PACKAGES DRIVER_FOLDER
#
# That the CUDA module opens in a process with LibTorch, as far as a machine without a GPU can tell: with a driver that does
# nothing (DRIVER_FOLDER has a libcuda.so.1 without any function) and stand-ins for the NVIDIA libraries, CUDA's own runtime is
# asked, and says that it finds no GPU; without those libraries the reason names the first that is missing. Exit 77 (skipped)
# where the environment of the stand-ins is missing, but a failure in CI.
set -euo pipefail
cli=$1 environment=$2 site_packages=$3 driver=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/judges/stand_ins.sh
. "$here/../../judges/stand_ins.sh"
need_stand_ins "$environment"
stand_ins=$(make_stand_ins "$environment" "$site_packages")

# expect LIBRARIES TEXT
expect() {
    local said rc=0
    said=$(LD_LIBRARY_PATH=$1 "$cli" run hello --device cuda 2>&1) || rc=$?
    if [[ $rc == 0 || $said != *"$2"* ]]; then
        printf 'exit %s, and it said:\n%s\nexpected: %s\n' "$rc" "$said" "$2" >&2
        exit 1
    fi
}

expect '' 'libcuda.so.1 is not on this machine: no NVIDIA driver. Take the device cpu'
expect "$driver:$stand_ins" 'no GPU can be used: CUDA finds none: '
if [[ ! -d $site_packages/nvidia/cudnn ]]; then
    expect "$driver" 'the CUDA module cannot be opened: lib'
    expect "$driver" '(./run --cuda fetches'
fi

# its kernels are registered by loading a library that nothing is called of: the linker must not have left it out
needed=$(readelf -d "$(dirname "$cli")/stagecraft_cuda.so")
[[ $needed == *'[libtorch_cuda.so]'* ]] || { echo "the module is not linked with libtorch_cuda.so" >&2; exit 1; }
