#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ./run and its job without a display, against a machine where all is installed and the programs are fakes that note how
# they are called.
# shellcheck disable=SC2016,SC2317  # texts of fake programs; cases are called by name
# shellcheck source-path=SCRIPTDIR source=machine.sh
. "$(dirname "${BASH_SOURCE[0]}")/machine.sh"

begin() {
    mkdir -p bin scripts build/release/bin
    cp "$source_root/run" .
    cp "$source_root"/scripts/* scripts/
    : >CMakePresets.json
    local pin
    while read -r pin; do site "$(tr - _ <<<"${pin%%==*}")-${pin##*==}" INSTALLER; done < <(sed -e "s/#.*//" -e "/^$/d" scripts/wheels-*.txt)
    tools bash sed awk xargs cat grep tr rm mkdir mktemp dirname env sha256sum date tee touch timeout nproc
    fake cmake <<<'echo "cmake $*" >>calls; touch build/release/build.ninja'
    fake ninja <<<'echo "ninja $*" >>calls'
    fake df <<<'printf "Filesystem 1024-blocks Used Available\n/dev/x 1 1 99999999 1%% /\n"'
    # its display is :7
    fake ../build/release/bin/stagecraft <<<'
        if [[ $1 == render && $QT_QPA_PLATFORM == *xcb* ]]; then
            [[ $DISPLAY == :7 ]] && touch "$3"
            exit
        fi
        echo "stagecraft $*, platform ${QT_QPA_PLATFORM:-}" >>'"$PWD/calls"
    # plan `wrong` is none, `simulate-only` has no model, `breaks` fails in its second step
    fake ../build/release/bin/stagecraft-cli <<<'
        echo "stagecraft-cli $*" >>'"$PWD/calls"'
        case $1 in
            simulate) [[ $2 != wrong ]] || { echo "no such plan" >&2; exit 1; }; echo "figures of $2, simulated"; echo "$2" >"$4" ;;
            run) [[ $2 != simulate-only ]] || { echo "the plan has no model" >&2; exit 1; }
                 echo "$2" >"$6"
                 [[ $2 != breaks ]] || { echo "step 1: out of memory" >&2; exit 1; }
                 echo "figures of $2, measured" ;;
            analyze) [[ -e $2 ]] || { echo "no such trace" >&2; exit 1; }; echo "figures of the trace $(<"$2")" ;;
            render | convert) echo "$1 of $(<"$2")" >"$3" ;;
            worker) [[ ! -e '"$PWD"'/no-engine ]] ;;
        esac'
    export PATH=$PWD/bin STAGECRAFT_SKIP_PACKAGES=1 DISPLAY='' WAYLAND_DISPLAY='' TMPDIR=$PWD
    unset QT_QPA_PLATFORM CI
    touch calls
}
expect_files() { [[ $(cd out && echo *) == "$1" ]] || { printf 'in out/: %s\nwanted:  %s\n' "$(cd out && echo *)" "$1"; exit 1; }; }
# refuses ARGUMENTS...: ./run must end with 2; its output is in $said
refuses() {
    local code=0
    said=$(bash ./run "$@" 2>&1) || code=$?
    ((code == 2)) || { printf './run %s ended with %d, not 2:\n%s\n' "$*" "$code" "$said"; exit 1; }
}

case_with_a_display_opens_the_window_with_all_arguments() {
    DISPLAY=:7 bash ./run --plan 'my plan' --trace=x.strace --theme dark --size 900x700 --run --use-measured
    expect_calls "stagecraft --plan my plan --trace x.strace --theme dark --size 900x700 --run --use-measured, platform "
}
case_what_needs_no_display_goes_to_the_program() {
    bash ./run --screenshot out.png --size 900x700
    expect_calls "stagecraft --screenshot out.png --size 900x700, platform offscreen"
    bash ./run render gpt-small --width 900 out.svg
    expect_calls "stagecraft render gpt-small --width 900 out.svg, platform offscreen"
    bash ./run --version
    expect_calls "stagecraft --version"
}
case_an_argument_that_is_not_known_is_refused_before_anything_is_built() {
    refuses --bogus
    expect_text "$said" "'--bogus' is not known"
    refuses run.strace
    refuses --plan
    expect_text "$said" "--plan takes a value"
    expect_no_calls
}
case_knows_every_option_of_the_desktop_program() {
    local options option
    options=$(grep -o 'program\.add_\(option\|flag\)("--[a-z-]*"' "$source_root/app/desktop/options.cpp" | grep -o -e '--[a-z-]*')
    [[ $options == *--plan* ]]
    for option in $options; do
        DISPLAY=:7 bash ./run "$option" value >/dev/null 2>said || grep -q "'value' is not known" said || { cat said; exit 1; }
    done
}
case_a_dead_display_is_said_and_the_job_is_done_without() {
    expect_text "$(DISPLAY=:55 bash ./run)" "No window can be opened on the display that is named here (DISPLAY=:55"
    expect_text "$(<out/report.txt)" "figures of gpt-small, measured"
}
case_simulates_and_runs_the_plan() {
    expect_text "$(bash ./run --plan mine)" "There is no display here"
    expect_files "measured.json measured.png measured.strace report.txt simulated.json simulated.png simulated.strace"
    expect_text "$(<out/report.txt)" "figures of mine, simulated"
    expect_text "$(<out/report.txt)" "figures of mine, measured"
    [[ $(<out/measured.png) == "render of mine" ]]
}
case_a_plan_to_simulate_only_gives_its_simulation_and_says_why_it_was_not_run() {
    bash ./run --plan mine >/dev/null
    expect_text "$(bash ./run --plan simulate-only)" "the plan has no model"
    expect_files "report.txt simulated.json simulated.png simulated.strace"
    expect_text "$(<out/report.txt)" "figures of simulate-only, simulated"
    expect_text "$(<out/report.txt)" "the plan has no model"
}
case_a_run_that_fails_keeps_its_trace_and_ends_with_1() {
    stops bash ./run --plan breaks
    expect_text "$(<out/report.txt)" "step 1: out of memory"
    expect_files "measured.json measured.png measured.strace report.txt simulated.json simulated.png simulated.strace"
}
case_without_an_engine_ends_with_1() {
    touch no-engine
    stops bash ./run --plan simulate-only
    expect_text "$(<out/report.txt)" "figures of simulate-only, simulated"
}
case_a_wrong_plan_leaves_the_earlier_results() {
    bash ./run --plan mine >/dev/null
    stops bash ./run --plan wrong
    expect_text "$said" "no such plan"
    expect_text "$(<out/report.txt)" "figures of mine, measured"
}
case_a_trace_is_analysed_and_drawn() {
    mkdir elsewhere
    echo given >elsewhere/given.strace
    (cd elsewhere && bash ../run --trace given.strace) >/dev/null
    expect_files "report.txt trace.json trace.png"
    expect_text "$(<out/report.txt)" "figures of the trace given"
    [[ $(<out/trace.png) == "render of given" ]]
}
case_a_trace_in_the_folder_of_results_is_kept() {
    bash ./run --plan mine >/dev/null
    bash ./run --trace out/measured.strace >/dev/null
    expect_files "measured.strace report.txt trace.json trace.png"
}
case_without_a_display_refuses_what_is_for_the_window() {
    refuses --theme dark
    expect_text "$said" "--theme is for the window"
    refuses --plan mine --trace x.strace
    expect_text "$said" "give --plan or --trace"
}

run_cases "$@"
