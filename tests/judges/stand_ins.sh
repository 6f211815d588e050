# SPDX-License-Identifier: Apache-2.0
#
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
