# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Can a window be opened here? Sourced by ./run.

# why_no_window PROGRAM: prints the reason and succeeds where no window can be opened; fails silently where one can.
# A variable that is set proves nothing: the display may be gone, or refuse. So Qt is asked, by a small picture that is
# drawn with the platforms of a window.
why_no_window() {
    local picture told
    if [[ -z ${DISPLAY:-} && -z ${WAYLAND_DISPLAY:-} ]]; then
        printf 'There is no display here (DISPLAY and WAYLAND_DISPLAY are empty)'
        return 0
    fi
    picture=$(mktemp -d)
    # a display on another host may answer late or never
    told=$(QT_QPA_PLATFORM=${QT_QPA_PLATFORM:-'wayland;xcb'} timeout 20 "$1" render hello "$picture/probe.png" 2>&1) && told=
    if [[ -e $picture/probe.png ]]; then
        rm -rf -- "$picture"
        return 1
    fi
    rm -rf -- "$picture"
    printf 'No window can be opened on the display that is named here (DISPLAY=%s, WAYLAND_DISPLAY=%s%s)' \
        "${DISPLAY:-}" "${WAYLAND_DISPLAY:-}" "${QT_QPA_PLATFORM:+, QT_QPA_PLATFORM=$QT_QPA_PLATFORM}"
    [[ -n $told ]] || printf ': it does not answer'
}
