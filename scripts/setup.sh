# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What ./run and ./test share: find out what is missing and install only that, then configure and build. Everything beside
# Debian's packages stays inside the checkout. Sourced, not run; expects set -euo pipefail and the folder in $root.

say() { printf '==> %s\n' "$*"; }
die() {
    printf '\nstopped: %s\n' "$1" >&2
    shift
    (($# == 0)) || printf '  %s\n' "$@" >&2
    exit 1
}

# First words of the lines of lists, comments left out.
list_entries() { sed -e 's/#.*//' -- "$@" | awk 'NF { print $1 }'; }

# --- Debian packages -----------------------------------------------------------------------------------------------------

# Those of the lists that are not installed, a line each, with the reason.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' 2>/dev/null | awk '$2 ~ /^.i/ { print $1 }')
    sed -e 's/#.*//' -- "$@" | awk -v installed="$installed" '
        BEGIN { split(installed, names, "\n"); for (i in names) have[names[i]] = 1 }
        NF && !($1 in have)'
}

# "debian 12"
distribution() {
    # shellcheck source=/dev/null
    (. /etc/os-release && printf '%s %s' "${ID:-unknown}" "${VERSION_ID:-}") 2>/dev/null || printf 'unknown'
}

install_packages() {
    [[ -n ${STAGECRAFT_SKIP_PACKAGES:-} ]] && return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        die "this is '$(distribution)', and packages are installed here for Debian 12 only" \
            "Install what matches these Debian packages by hand, then set STAGECRAFT_SKIP_PACKAGES=1 and try again:" \
            "$(list_entries "$@" | xargs)"
    fi
    local missing names as_root=()
    missing=$(missing_packages "$@")
    [[ -n $missing ]] || return 0
    names=$(awk '{ print $1 }' <<<"$missing" | xargs)
    say "Debian packages to install:"
    printf '%s\n' "$missing" | sed 's/^/      /'
    [[ $(distribution) == "debian 12" ]] || say "this is '$(distribution)', not debian 12; the packages' names may differ"

    if (($(id -u) != 0)); then
        command -v sudo >/dev/null || die "installing packages takes root's rights, and sudo is not there" \
            "As root: apt-get update && apt-get install $names" "Then try again."
        say "sudo is used for apt-get only, and may ask for your password"
        as_root=(sudo)
    fi
    need_space / 2500 "the Debian packages"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update || say "the package lists could not all be renewed; trying with what is there"
    # shellcheck disable=SC2086  # a list of names
    "${apt[@]}" install -y --no-install-recommends $names || die "the packages could not be installed (see above)" \
        "Is there a network, and is this Debian 12? This is '$(distribution)'." \
        "By hand: apt-get update && apt-get install $names" \
        "Where they have other names, install what matches, then set STAGECRAFT_SKIP_PACKAGES=1 and try again."
}

# --- disk ----------------------------------------------------------------------------------------------------------------

# need_space FOLDER MIB WHAT
need_space() {
    local free
    free=$(df -Pk -- "$1" | awk 'NR == 2 { print int($4 / 1024) }')
    ((free >= $2)) || die "$3 need about $2 MiB of disk at $(cd "$1" && pwd), and $free MiB are free" \
        "Make room there, or move the checkout to a larger disk, then try again."
}

# --- Python packages -----------------------------------------------------------------------------------------------------

gpu_found() { [[ -e /dev/nvidia0 ]] || { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }; }

# ensure_venv FOLDER
ensure_venv() {
    "$1/bin/python" -c 'import pip' 2>/dev/null && return 0
    say "making $1"
    [[ -L $1 ]] || rm -rf -- "$1" # one that does not work, if any
    /usr/bin/python3 -m venv "$1" || die "the virtual environment $1 cannot be made" \
        "Is python3-venv installed? By hand: apt-get install python3 python3-venv"
}

# Pins of a list that are not wholly installed in FOLDER. pip writes INSTALLER into RECORD last, so an installation that
# was cut off counts as missing.
missing_wheels() {
    local folder=$1 pin record
    for pin in $(list_entries "$2"); do
        record=$(compgen -G "$folder/lib/python3*/site-packages/$(tr - _ <<<"${pin%%==*}")-${pin##*==}.dist-info/RECORD" || true)
        [[ -n $record ]] && grep -q 'INSTALLER' "$record" || printf '%s\n' "$pin"
    done
}

# pip_install FOLDER ARGUMENTS...
pip_install() {
    local folder=$1
    shift
    mkdir -p "$folder/tmp"
    # its own folder for downloads: /tmp may be small; no cache: the wheels are large and installed once
    TMPDIR="$PWD/$folder/tmp" "$folder/bin/python" -m pip install --no-cache-dir --disable-pip-version-check "$@" ||
        die "the Python packages could not be installed into $folder (see above)" \
            "Is there a network? They come from the Python package index." "What is installed already stays; try again."
    rm -rf -- "${folder:?}/tmp"
}

# install_wheels LIST MIB WHAT
install_wheels() {
    local missing
    missing=$(missing_wheels .venv "$1")
    [[ -n $missing ]] || return 0
    ensure_venv .venv
    say "$3, into .venv:"
    printf '%s\n' "$missing" | sed 's/^/      /'
    need_space .venv "$2" "$3"
    # shellcheck disable=SC2086  # a list of pins
    pip_install .venv --no-deps --force-reinstall $missing
}

install_libtorch() {
    install_wheels scripts/wheels-cpu.txt 4000 "LibTorch for CPUs (1.3 GB)"
    if [[ ${want_cuda:-no} == yes ]] || gpu_found; then
        install_wheels scripts/wheels-cuda.txt 8000 "the NVIDIA libraries for GPUs (3.9 GB)"
    fi
}

# The path for GPUs is compiled and tested where there is none as well.
install_cuda_headers() { install_wheels scripts/wheels-cuda-build.txt 600 "what the path for GPUs is built against (0.2 GB)"; }

# The readers of other projects that the tests hand our files to.
install_judges() {
    local list=tests/judges/requirements.txt stamp=.venv-test/.installed wanted
    [[ -f $list ]] || return 0
    wanted=$(sha256sum <"$list")
    [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && return 0
    ensure_venv .venv-test
    say "the readers that check our exports, into .venv-test"
    need_space .venv-test 2000 "the readers that check our exports"
    pip_install .venv-test --quiet --no-deps -r "$list"
    printf '%s' "$wanted" >"$stamp"
}

# --- build ---------------------------------------------------------------------------------------------------------------

# As many compilers as cores, but not more than memory carries: a unit with LibTorch's headers takes about 1.5 GB.
build_jobs() {
    local cores by_memory
    cores=$(nproc)
    by_memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
    ((by_memory >= 1)) || by_memory=1
    printf '%d' $((cores < by_memory ? cores : by_memory))
}

use_ccache() {
    # paths relative to the checkout, so that build folders and clones share what was compiled
    export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
}

# configure PRESET ARGUMENTS...: only when the arguments, the presets or the pinned wheels are not those of the last time;
# changes to CMakeLists.txt are Ninja's to see.
configure() {
    local preset=$1 stamp wanted
    shift
    [[ ${CI:-} == true ]] && set -- "$@" -DSTAGECRAFT_WERROR=ON
    stamp=build/$preset/.configured
    wanted=$(printf '%s\n' "$*"; cat CMakePresets.json scripts/wheels-*.txt | sha256sum)
    [[ -f build/$preset/build.ninja && -f $stamp && $(<"$stamp") == "$wanted" ]] && return 0
    need_space . 2000 "the build"
    say "configuring build/$preset"
    mkdir -p "build/$preset"
    cmake --preset "$preset" "$@" >"build/$preset/configure.log" 2>&1 || {
        cat "build/$preset/configure.log" >&2
        die "the build cannot be configured (see above)" "The folder build/$preset may be deleted and made anew."
    }
    printf '%s' "$wanted" >"$stamp"
}

# build PRESET TARGETS...
build() {
    local preset=$1
    shift
    ninja -C "build/$preset" -j "$(build_jobs)" "$@" || die "the build failed (see above)"
}
