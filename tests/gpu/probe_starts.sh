#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probe_starts.sh PROBE ENVIRONMENT SITE_PACKAGES DRIVER_FOLDER
#
# That gpu_probe is linked with LibTorch's CUDA side so that it starts, has the parts that tests/gpu/check asks for, and says where there is
# no GPU. With a driver that does nothing and stand-ins for the NVIDIA libraries, as tests/runtime/cuda/module_opens.sh. Exit 77 (skipped)
# likewise.
set -euo pipefail
probe=$1 environment=$2 site_packages=$3 driver=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/judges/stand_ins.sh
. "$here/../judges/stand_ins.sh"
need_stand_ins "$environment"
stand_ins=$(make_stand_ins "$environment" "$site_packages")

# expect EXIT TEXT ARGUMENTS...
expect() {
    local code=$1 text=$2 said rc=0
    shift 2
    said=$(LD_LIBRARY_PATH=$driver:$stand_ins "$probe" "$@" 2>&1) || rc=$?
    if [[ $rc != "$code" || $said != *"$text"* ]]; then
        printf 'gpu_probe %s: exit %s, and it said:\n%s\nexpected: exit %s, %s\n' "$*" "$rc" "$said" "$code" "$text" >&2
        exit 1
    fi
}

expect 0 'marks kernels-alone|launching-calls|all-calls' --list
expect 2 'marks takes --variant kernels-alone|launching-calls|all-calls' marks --variant all
expect 2 'what is --flush-ms?' latency --flush-ms x
expect 77 'no GPU can be used: CUDA finds none: ' latency --buffer-kib 64 --flush-ms 20 --limit-ms 100 --activities /dev/null

# every part that the check asks for is there
LD_LIBRARY_PATH=$driver:$stand_ins "$probe" --list | "$environment/bin/python" -c '
import importlib.machinery, importlib.util, pathlib, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check", sys.argv[1])
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
loader.exec_module(check)
there = {(name, variant) for name, _, variants in (line.strip().partition(" ") for line in sys.stdin) for variant in variants.split("|")}
asked = {(part.arguments[0], part.arguments[2] if part.arguments[1:2] == ["--variant"] else "") for part in check.probe_parts(pathlib.Path())}
if there != asked: sys.exit(f"in gpu_probe or in the check alone: {there ^ asked}")
' "$here/check"
