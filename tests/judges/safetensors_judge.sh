#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# safetensors_judge.sh ENVIRONMENT CLI
#
# Runs safetensors_judge.py. Exit 77 (skipped) where the library is missing, but a failure in CI.
set -euo pipefail
environment=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! "$environment/bin/python" -c 'import numpy, safetensors' 2>/dev/null; then
    echo "the safetensors library is not installed in $environment; run ./test once, it installs it" >&2
    [[ ${CI:-} == true ]] && exit 1
    exit 77
fi
"$environment/bin/python" "$here/safetensors_judge.py" "$2"
