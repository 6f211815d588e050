#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two hosts on one machine: two network namespaces with a cable between them, host names of their own, and where the kernel has time
# namespaces a clock on the second that is an hour ahead. All that the processes say to each other goes over TCP.
#
#   two_hosts.sh mpirun COMMAND...       runs COMMAND under "mpirun -np 2", which starts its daemon on the second through a stand-in for ssh
#   two_hosts.sh torchrun COMMAND...     starts COMMAND with torchrun's variables
#
# One process is on each host.
#
# Exit code 77, with the reason, where such namespaces are not allowed.
set -euo pipefail

skip() {
    echo "skipped: $*"
    exit 77
}

launcher=$1
shift
[[ $launcher == torchrun ]] || command -v mpirun >/dev/null || skip "mpirun is not installed"
command -v ip >/dev/null || skip "ip (iproute2) is not installed"
[[ $(id -u) == 0 ]] || skip "network namespaces take root's rights"

tag=sc$$
work=$(mktemp -d)
cleanup() {
    ip netns del "$tag-a" 2>/dev/null || true
    ip netns del "$tag-b" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

ip netns add "$tag-a" 2>"$work/why" && ip netns add "$tag-b" 2>"$work/why" || skip "network namespaces are not allowed: $(cat "$work/why")"
ip link add "$tag-a0" netns "$tag-a" type veth peer name "$tag-b0" netns "$tag-b" 2>"$work/why" || skip "no veth devices: $(cat "$work/why")"
for end in a:1 b:2; do
    name=$tag-${end%:*}
    ip -n "$name" addr add "10.77.0.${end#*:}/24" dev "${name}0"
    ip -n "$name" link set "${name}0" up
    ip -n "$name" link set lo up
done

own_clock=()
unshare --time --monotonic 3600 --fork true 2>/dev/null && own_clock=(--time --monotonic 3600 --fork)

exec_on_a() { ip netns exec "$tag-a" unshare --uts sh -c 'hostname host-a && exec "$@"' sh "$@"; }
exec_on_b() { ip netns exec "$tag-b" unshare --uts "${own_clock[@]}" sh -c 'hostname host-b && exec "$@"' sh "$@"; }

if [[ $launcher == torchrun ]]; then
    variables=(WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500)
    exec_on_b env RANK=1 "${variables[@]}" "$@" &
    code=0
    exec_on_a env RANK=0 "${variables[@]}" "$@" || code=$?
    wait $! || code=$?
    exit "$code"
fi

# mpirun calls it as it calls ssh: [-x] HOST COMMAND
cat >"$work/ssh" <<AGENT
#!/bin/sh
[ "\$1" = -x ] && shift
shift
exec ip netns exec $tag-b unshare --uts ${own_clock[*]} sh -c "hostname host-b && \$*"
AGENT
chmod +x "$work/ssh"
printf '10.77.0.1 slots=1\n10.77.0.2 slots=1\n' >"$work/hosts"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec_on_a mpirun -np 2 --hostfile "$work/hosts" --map-by node --mca plm_rsh_agent "$work/ssh" --mca btl tcp,self \
    --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 "$@"
