#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/setup.sh against a machine made of fake programs: what is installed, what is asked for, how it stops. Nothing is
# really installed.
# shellcheck disable=SC2016,SC2317  # texts of fake programs; cases and their overrides are called by name
# shellcheck source-path=SCRIPTDIR source=machine.sh
. "$(dirname "${BASH_SOURCE[0]}")/machine.sh"

# A machine: Debian 12, root, plenty of disk, with g++ and cmake installed, and ninja removed but for its settings.
machine() {
    mkdir -p bin scripts
    cp "$source_root/CMakePresets.json" .
    cp "$source_root"/scripts/*.txt scripts/
    printf 'g++ # compiles\ncmake\n' >installed.txt
    printf 'g++          compiles\ncmake        configures\nninja-build  drives the build\nqt6-base-dev the window\n' >needs.txt
    tools bash sed awk xargs cat grep tr rm mkdir dirname env sha256sum ln chmod touch echo
    fake dpkg-query <<<'printf "g++ ii \ncmake hi \nninja-build rc \n"; [ -e now-installed ] && sed "s/$/ ii /" now-installed; exit 0'
    fake apt-get <<<'echo "apt-get $*" >>calls; [ "$(cat apt-fails 2>/dev/null)" ] && [[ "$*" == *install* ]] && exit 100
                     [[ "$*" == *install* ]] && printf "ninja-build\nqt6-base-dev\n" >now-installed; exit 0'
    fake df <<<'printf "Filesystem 1024-blocks Used Available\n/dev/x 1 1 $(( $(cat free-mib 2>/dev/null || echo 90000) * 1024 )) 1%% /\n"'
    fake id <<<'echo 0'
    touch calls
}

begin() {
    machine
    export PATH=$PWD/bin
    # shellcheck disable=SC2034  # setup.sh reads it
    root=$PWD
    . "$source_root/scripts/setup.sh"
    distribution() { printf 'debian 12'; }
    gpu_found() { false; }
    ensure_venv() { [[ -x .venv/bin/python ]] || { echo "asked for a real virtual environment"; exit 1; }; }
}

case_lists_what_is_missing_with_the_reason() {
    [[ $(missing_packages needs.txt) == $'ninja-build  drives the build\nqt6-base-dev the window' ]]
}
case_installs_only_what_is_missing_and_nothing_the_second_time() {
    install_packages needs.txt
    expect_calls "install -y --no-install-recommends ninja-build qt6-base-dev"
    : >calls
    install_packages needs.txt
    expect_no_calls
}
case_without_apt_names_the_packages_to_install_by_hand() {
    rm bin/apt-get
    distribution() { printf 'fedora 42'; }
    stops install_packages needs.txt
    expect_text "$said" "fedora 42"
    expect_text "$said" "g++ cmake ninja-build qt6-base-dev"
    STAGECRAFT_SKIP_PACKAGES=1 install_packages needs.txt
}
case_without_root_or_sudo_says_what_root_has_to_do() {
    fake id <<<'echo 1000'
    stops install_packages needs.txt
    expect_text "$said" "As root: apt-get update && apt-get install ninja-build qt6-base-dev"
    expect_no_calls
}
case_without_root_goes_through_sudo() {
    fake id <<<'echo 1000'
    fake sudo <<<'echo "sudo $*" >>calls; exec "$@"'
    install_packages needs.txt
    expect_calls "sudo env DEBIAN_FRONTEND=noninteractive apt-get"
}
case_a_failing_apt_stops_with_the_remedy() {
    echo yes >apt-fails
    stops install_packages needs.txt
    expect_text "$said" "Is there a network"
    expect_text "$said" "apt-get install ninja-build qt6-base-dev"
}
case_a_full_disk_stops_before_anything_is_fetched() {
    echo 100 >free-mib
    stops install_packages needs.txt
    expect_text "$said" "100 MiB are free"
    expect_no_calls
}

with_venv() {
    mkdir -p .venv/bin
    ln -s ../../bin/fakepython .venv/bin/python
    fake fakepython <<<'[ "$1" = -c ] || echo "python $*" >>calls; [ ! -e pip-fails ]'
}
case_wheels_that_are_cut_off_count_as_missing() {
    site torch-2.11.0 'torch/__init__.py,,'
    site nvidia_cuda_cupti-13.0.85 'nvidia_cuda_cupti-13.0.85.dist-info/INSTALLER,sha256=x,4'
    [[ $(missing_wheels .venv scripts/wheels-cpu.txt) == $'torch==2.11.0\nnvidia-cuda-runtime==13.0.96' ]]
}
case_installs_the_missing_wheels_without_dependencies_or_cache() {
    with_venv
    site nvidia_cuda_cupti-13.0.85 INSTALLER
    site nvidia_cuda_runtime-13.0.96 INSTALLER
    install_libtorch
    expect_calls "pip install --no-cache-dir --disable-pip-version-check --no-deps --force-reinstall torch==2.11.0"
    [[ $(<calls) != *nvidia* && ! -e .venv/tmp ]]
}
case_installed_wheels_need_no_network() {
    with_venv
    for name in torch-2.11.0 nvidia_cuda_cupti-13.0.85 nvidia_cuda_runtime-13.0.96; do site $name INSTALLER; done
    install_libtorch
    expect_no_calls
}
case_a_gpu_or_the_option_brings_its_libraries() {
    with_venv
    for name in torch-2.11.0 nvidia_cuda_cupti-13.0.85 nvidia_cuda_runtime-13.0.96; do site $name INSTALLER; done
    want_cuda=yes install_libtorch
    expect_calls "nvidia-nccl-cu13==2.28.9"
    : >calls
    gpu_found() { true; }
    install_libtorch
    expect_calls "nvidia-cublas==13.1.0.3"
}
case_wheels_need_room() {
    with_venv
    echo 3000 >free-mib
    stops install_libtorch
    expect_text "$said" "3000 MiB are free"
    expect_no_calls
}
case_a_failing_download_stops_with_the_remedy() {
    with_venv
    touch pip-fails
    stops install_libtorch
    expect_text "$said" "Is there a network"
}

with_cmake() { fake cmake <<<'echo "cmake $*" >>calls; [ -e cmake-fails ] && echo "no Qt" && exit 1; touch build/release/build.ninja'; }
case_configures_again_only_for_other_arguments_or_presets() {
    unset CI
    with_cmake
    configure release -DA=1
    expect_calls "cmake --preset release -DA=1"
    : >calls
    configure release -DA=1
    expect_no_calls
    configure release -DA=2
    expect_calls "-DA=2"
    : >calls
    printf ' ' >>CMakePresets.json
    configure release -DA=2
    expect_calls "-DA=2"
}
case_warnings_are_errors_in_ci() {
    with_cmake
    CI=true configure release
    expect_calls "-DSTAGECRAFT_WERROR=ON"
}
case_a_failing_configuration_is_shown_and_tried_again() {
    with_cmake
    touch cmake-fails
    stops configure release
    expect_text "$said" "no Qt"
    rm cmake-fails
    configure release
}

run_cases "$@"
