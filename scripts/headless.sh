#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# headless.sh STARTED_IN [--plan FILE]: the main job without a display. Simulates a plan, really runs it, and leaves the
# pictures, the traces and a report in out/.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cli=$root/build/release/bin/stagecraft-cli
out=$root/out

cd "$1"
shift
plan=gpt-small
while (($# > 0)); do
    case $1 in
        --plan) plan=${2:?--plan takes a file}; shift 2 ;;
        *) printf 'left out, as there is no display: %s\n' "$1"; shift ;;
    esac
done

printf '\nThere is no display here (DISPLAY and WAYLAND_DISPLAY are empty), so the window stays closed.\n'
printf 'Instead, plan %s is simulated and really run; the results go to %s\n\n' "$plan" "$out"
mkdir -p "$out"

simulated=$("$cli" simulate "$plan" --trace "$out/simulated.strace")
measured=$("$cli" run "$plan" --steps 3 --trace "$out/measured.strace")
for trace in simulated measured; do
    "$cli" convert "$out/$trace.strace" "$out/$trace.json" >/dev/null
    "$cli" render "$out/$trace.strace" "$out/$trace.png" >/dev/null
done

{
    printf 'Stagecraft, plan %s, %s\n\n' "$plan" "$(date '+%Y-%m-%d %H:%M')"
    printf 'SIMULATED\n%s\n\nMEASURED\n%s\n' "$simulated" "$measured"
} | tee "$out/report.txt"

cat <<SUMMARY

In $out:
  report.txt                            these figures
  simulated.png     measured.png        the timelines
  simulated.json    measured.json       the same for chrome://tracing and ui.perfetto.dev
  simulated.strace  measured.strace     the same for Stagecraft itself

Next:  $cli --help
       ./run on a machine with a display opens the window
SUMMARY
