#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the pictures of README.md again, from the release build, without a display: scripts/pictures.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=build/release/bin
out=docs/pictures
[[ -x $bin/stagecraft ]] || { echo "build first: ./run or ./test" >&2; exit 1; }
mkdir -p "$out" "${TMPDIR:-/tmp}/stagecraft-pictures"
export QT_QPA_PLATFORM=offscreen
work=${TMPDIR:-/tmp}/stagecraft-pictures # not a random name: the log in the pictures shows it
trap 'rm -rf "$work"' EXIT

# gpt-small on four emulated ranks: the preset has two and threads
plan() {
    python3 - "$1" "$2" "$3" >"$work/gpt-small.plan.json" <<'PY'
import json, sys
plan = json.load(open("resources/plans/gpt-small.plan.json"))
plan["pipeline"]["ranks"] = int(sys.argv[1])
plan["description"] = "A small GPT on four ranks."
plan["run"].update(mode=sys.argv[2], steps=int(sys.argv[3]))
del plan["partition"]
print(json.dumps(plan))
PY
}

"$bin/stagecraft" --plan twelve-layers --theme light --size 1280x800 --screenshot "$out/simulated.png"
# the spread of its times comes from a seed
python3 - >"$work/spread.plan.json" <<'PY'
import json
plan = json.load(open("resources/plans/gpt-small.plan.json"))
plan["name"] = "spread"
plan["description"] = "A small GPT on four ranks whose actions take now more, now less."
plan["pipeline"].update(schedule="zb-h1", ranks=4, microbatches=64)
plan["costs"]["jitter"] = 0.15
del plan["partition"]
print(json.dumps(plan))
PY
"$bin/stagecraft" --plan "$work/spread.plan.json" --theme light --size 1280x800 --statistics --screenshot "$out/statistics.png"
"$bin/stagecraft" --plan twelve-layers --theme light --size 1280x800 --show gallery --screenshot "$out/gallery.png"
"$bin/stagecraft" --plan twelve-layers --theme dark --size 1280x800 --show curves --screenshot "$out/curves.png"
plan 4 emulated 4
"$bin/stagecraft" --plan "$work/gpt-small.plan.json" --theme dark --size 1600x1000 --run --screenshot-at step:2 --screenshot "$out/live.png"
"$bin/stagecraft" --plan "$work/gpt-small.plan.json" --theme light --size 1600x1000 --run --use-measured --screenshot-at end --screenshot "$out/overlay.png"
