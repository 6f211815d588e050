# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A machine made of fake programs, for the tests of the scripts. Sourced by a test, whose functions case_* are its cases:
# `run_cases "$@"` at its end runs each in a process and a folder of its own, with a line of `ok` or `FAILED` per case.
set -euo pipefail
# shellcheck disable=SC2034  # read by the tests
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# fake NAME: a program of that name that runs the script on standard input
fake() {
    mkdir -p "$(dirname "bin/$1")"
    {
        printf '#!/bin/bash\n'
        cat
    } >"bin/$1"
    chmod +x "bin/$1"
}

# tools NAME...: real programs that the machine has
tools() {
    local tool
    for tool in "$@"; do ln -s "$(type -P "$tool")" "bin/$tool"; done
}

site() { mkdir -p ".venv/lib/python3.11/site-packages/$1.dist-info" && printf '%s\n' "$2" >".venv/lib/python3.11/site-packages/$1.dist-info/RECORD"; }

# Assertions that stop a case.
expect_calls() { [[ $(<calls) == *"$1"* ]] || { printf 'calls were:\n%s\nwanted: %s\n' "$(<calls)" "$1"; exit 1; }; }
expect_no_calls() { [[ ! -s calls ]] || { printf 'unexpected calls:\n%s\n' "$(<calls)"; exit 1; }; }
expect_text() { [[ $1 == *"$2"* ]] || { printf 'text was:\n%s\nwanted: %s\n' "$1" "$2"; exit 1; }; }
# stops COMMAND...: the command must die; its output is in $said
stops() { if said=$("$@" 2>&1); then printf 'did not stop: %s\n%s\n' "$*" "$said"; exit 1; fi; }

run_cases() {
    if (($# > 0)); then # one case, in the folder where this was called
        begin
        "$1"
        exit
    fi
    local test work name output failures=0
    test=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
    work=$(mktemp -d)
    # shellcheck disable=SC2064  # the folder of now
    trap "rm -rf '$work'" EXIT
    for name in $(compgen -A function case_); do
        mkdir "$work/$name"
        if output=$(cd "$work/$name" && bash "$test" "$name" 2>&1); then
            printf 'ok      %s\n' "$name"
        else
            printf 'FAILED  %s\n%s\n' "$name" "$output"
            failures=$((failures + 1))
        fi
    done
    ((failures == 0))
}
