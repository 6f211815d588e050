#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# judge.sh READER ENVIRONMENT JUDGE_INPUT -|CLI ARGUMENTS...
#
# Lets one reader of this folder judge an export: of a trace with some of everything ("-"), or of the trace that the
# command line writes with these arguments. Exit 77 (skipped) where the readers' environment is missing, but a failure in CI.
set -euo pipefail
reader=$1 environment=$2 judge_input=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ! -x $environment/bin/python ]]; then
    echo "the readers that judge exports are not installed in $environment; run ./test once, it installs them" >&2
    [[ ${CI:-} == true ]] && exit 1
    exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ $1 == - ]]; then
    "$judge_input" - "$folder"
else
    "$@" --trace "$folder/run.strace" >"$folder/output"
    "$judge_input" "$folder/run.strace" "$folder"
fi
"$environment/bin/python" "$here/$reader.py" "$folder"
