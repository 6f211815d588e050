#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torch_judge.sh SCRIPT ENVIRONMENT SITE_PACKAGES ARGUMENTS...
#
# Runs a Python script with PyTorch: the LibTorch wheel in SITE_PACKAGES, the other packages in ENVIRONMENT, and stand-ins
# for the NVIDIA libraries that are not installed, made once. Exit 77 (skipped) where the environment is missing, but a failure
# in CI.
set -euo pipefail
script=$1 environment=$2 site_packages=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! "$environment/bin/python" -c 'import sympy, typing_extensions' 2>/dev/null; then
    echo "what PyTorch needs in Python is not installed in $environment; run ./test once, it installs it" >&2
    [[ ${CI:-} == true ]] && exit 1
    exit 77
fi

# shellcheck source=tests/judges/stand_ins.sh
. "$here/stand_ins.sh"
stand_ins=$(make_stand_ins "$environment" "$site_packages")

PYTHONPATH=$site_packages LD_LIBRARY_PATH=$stand_ins CUDA_VISIBLE_DEVICES='' PYTHONDONTWRITEBYTECODE=1 \
    "$environment/bin/python" "$script" "$@"
