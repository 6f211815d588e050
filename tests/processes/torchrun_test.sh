#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# torchrun_test.sh CLI ENVIRONMENT SITE_PACKAGES
#
# torchrun starts a run in two processes: they meet at its agent's store, find the gradients right to the bit, and end as it expects.
# Where a rank is killed, rank 0 says so before torchrun ends the others. Exit code 77 where PyTorch cannot run.
set -euo pipefail
cli=$1 environment=$2 site_packages=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
killer=
trap 'if [[ -n $killer ]]; then kill "$killer" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT

torchrun() {
    "$here/../judges/torch_judge.sh" "$here/torchrun.py" "$environment" "$site_packages" --standalone --no-python --nproc-per-node 2 "$@"
}

code=0
torchrun "$cli" run hello --mode processes --steps 3 --check all --json --trace "$folder/run.strace" >"$folder/result.json" 2>"$folder/said" || code=$?
cat "$folder/said"
((code == 0)) || exit "$code"
grep -q '"gradient_check": "bitwise"' "$folder/result.json"
grep -c '"mode": "processes"' "$folder/result.json" | grep -qx 1 # said once
[[ -e $folder/run.strace && ! -e $folder/run.rank0.strace && ! -e $folder/run.rank1.strace ]]

# the victim is told from others by its trace
(
    until [[ $(stat -c %s "$folder/killed.rank1.strace" 2>/dev/null || echo 0) -gt 20000 ]]; do sleep 0.05; done
    for process in /proc/[0-9]*; do
        if tr '\0' '\n' <"$process/environ" 2>/dev/null | grep -qx RANK=1 && tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q "$folder/killed.strace"; then
            kill -KILL "${process#/proc/}"
        fi
    done
) &
killer=$!
if torchrun "$cli" run mlp --ranks 2 --mode processes --steps 1000000 --check off --trace "$folder/killed.strace" 2>"$folder/said"; then
    echo "a run whose rank was killed ended well"
    exit 1
fi
wait "$killer"
killer=
grep -q 'stagecraft-cli: rank 1 died' "$folder/said" || {
    cat "$folder/said"
    exit 1
}
