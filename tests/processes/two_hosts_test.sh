#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A run on two hosts (two_hosts.sh): the gradients are right to the bit, the clocks are brought together, and rank 0 has the whole trace.
set -euo pipefail
launcher=$1
cli=$2
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

code=0
"$here/two_hosts.sh" "$launcher" "$cli" run hello --mode processes --steps 3 --check all --json --trace "$folder/run.strace" >"$folder/result.json" || code=$?
if ((code == 77)); then
    cat "$folder/result.json"
    exit 77
fi
((code == 0)) || exit 1
grep -q '"gradient_check": "bitwise"' "$folder/result.json"

"$cli" analyze "$folder/run.strace" >"$folder/text"
head -3 "$folder/text"
! grep -q 'note' "$folder/text" || { echo "the trace has notes"; exit 1; }
[[ ! -e $folder/run.rank0.strace && ! -e $folder/run.rank1.strace ]] || { echo "parts were left behind"; exit 1; }
if unshare --time --monotonic 3600 --fork true 2>/dev/null; then # the second host is an hour ahead
    grep -q 'clock of rank 1 on host-b: -' "$folder/text" || { echo "no clock of host-b"; exit 1; }
fi
