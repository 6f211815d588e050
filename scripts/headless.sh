#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# headless.sh REASON STARTED_IN [--plan PLAN | --trace FILE]: the main job without a display. Simulates a plan and really
# runs it, or analyses a trace, and leaves pictures, traces and a report in out/.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cli=$root/build/release/bin/stagecraft-cli
out=$root/out
reason=$1
cd "$2"
shift 2

plan=
trace=
while (($# > 0)); do
    case $1 in
        --plan) plan=$2; shift 2 ;;
        --trace) trace=$2; shift 2 ;;
        *)
            printf 'run: %s is for the window. %s; add --screenshot OUT.png to draw the window into a file\n' "$1" "$reason" >&2
            exit 2
            ;;
    esac
done
if [[ -n $plan && -n $trace ]]; then
    printf 'run: %s; give --plan or --trace, only the window shows both at once\n' "$reason" >&2
    exit 2
fi

report() { tee -a "$out/report.txt"; }
files=(report.txt)
# picture NAME TRACE: draws it, and writes it for other programs
picture() {
    "$cli" render "$2" "$out/$1.png" >/dev/null && "$cli" convert "$2" "$out/$1.json" >/dev/null || return 1
    files+=("$1.png" "$1.json")
}
# What an earlier call left, but for the files named: nothing here may be taken for a result of this one.
clear_old() {
    local old kept
    for old in "$out"/report.txt "$out"/{trace,simulated,measured}.{strace,json,png}; do
        for kept in "$@"; do [[ ! $old -ef $kept ]] || continue 2; done
        rm -f -- "$old"
    done
}

# A wrong name fails before anything is cleared.
analyse_trace() {
    local figures
    printf 'Instead, trace %s is analysed and drawn; the results go to %s\n' "$trace" "$out"
    figures=$("$cli" analyze "$trace")
    clear_old "$trace"
    printf '\nStagecraft, trace %s, %s\n\n%s\n' "$trace" "$(date '+%Y-%m-%d %H:%M')" "$figures" | report
    picture trace "$trace"
}

simulate_plan() {
    local figures
    printf 'Instead, plan %s is simulated and, where it has a model, really run; the results go to %s\n' "$plan" "$out"
    figures=$("$cli" simulate "$plan" --trace "$out/simulated.strace")
    clear_old "$out/simulated.strace"
    printf '\nStagecraft, plan %s, %s\n\nSIMULATED\n%s\n' "$plan" "$(date '+%Y-%m-%d %H:%M')" "$figures" | report
    picture simulated "$out/simulated.strace"
    files+=(simulated.strace)
}

run_plan() {
    local figures code=0
    told=$(mktemp)
    trap 'rm -f -- "$told"' EXIT
    trap : INT # ends the run, not the report of what it did until then
    printf '\nRunning three steps for real; that takes some seconds for gpt-small ...\n'
    if figures=$("$cli" run "$plan" --steps 3 --trace "$out/measured.strace" 2>"$told"); then
        printf '\nMEASURED\n%s\n' "$figures" | report
    elif [[ -s $out/measured.strace ]]; then
        code=1
        printf '\nTHE RUN FAILED; what came until then is kept\n%s\n' "$figures" | report
    else
        # A run that does not start leaves no trace: the plan is one to simulate, unless the engine itself is missing.
        "$cli" worker </dev/null >/dev/null 2>&1 || code=1
        printf '\nNOT RUN\n' | report
    fi
    trap - INT
    report <"$told"
    [[ -s $out/measured.strace ]] || return "$code"
    files+=(measured.strace)
    # a run that failed in its first moments may have left too little to draw
    picture measured "$out/measured.strace" || code=1
    return "$code"
}

printf '\n%s, so the window stays closed.\n' "$reason"
mkdir -p "$out"
failed=0
if [[ -n $trace ]]; then
    analyse_trace
else
    plan=${plan:-gpt-small}
    simulate_plan
    run_plan || failed=1
fi

cat <<SUMMARY

In $out: ${files[*]}
  .txt the figures, .png the timeline, .json the same for chrome://tracing and ui.perfetto.dev, .strace for Stagecraft itself

Next:  $cli --help
       ./run on a machine with a display opens the window
SUMMARY
exit "$failed"
