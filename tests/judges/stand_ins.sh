# SPDX-License-Identifier: Apache-2.0
#
# need_stand_ins ENVIRONMENT
#
# Ends the script with 77 (skipped) where there is a driver, so that no stand-in is needed, and where the environment that makes them
# is missing; the latter is a failure in CI.
need_stand_ins() {
    if [[ ! -x $1/bin/python ]]; then
        echo "what makes the stand-ins is not installed in $1; run ./test once, it installs it" >&2
        [[ ${CI:-} == true ]] && exit 1
        exit 77
    fi
    if ldconfig -p | grep -q libcuda.so.1; then
        echo "there is a driver: this is for machines without" >&2
        exit 77
    fi
}

# make_stand_ins ENVIRONMENT SITE_PACKAGES
#
# Prints the folder with stand-ins for the NVIDIA libraries that are not installed beside LibTorch (cuda_stand_ins.py). It is
# made once, and anew for another version or where the NVIDIA wheels came or went.
make_stand_ins() {
    local environment=$1 site_packages=$2 here stamp stand_ins making
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    stamp=$(cat "$site_packages/torch/version.py" "$here/cuda_stand_ins.py"; compgen -G "$site_packages/nvidia/*/lib" || true)
    stand_ins=$environment/cuda-stand-ins-$(sha256sum <<<"$stamp" | cut -c1-16)
    if [[ ! -d $stand_ins ]]; then
        making=$(mktemp -d -p "$environment")
        "$environment/bin/python" "$here/cuda_stand_ins.py" "$site_packages/torch/lib" "$making" >&2 || { rm -rf "$making"; return 1; }
        mv -T "$making" "$stand_ins" 2>/dev/null || { rm -rf "$making"; [[ -d $stand_ins ]]; } # another test was quicker
    fi
    printf '%s\n' "$stand_ins"
}
