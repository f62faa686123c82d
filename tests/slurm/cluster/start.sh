#!/usr/bin/env bash
# Start munged, slurmctld and three slurmd on this machine alone, as root; ends when every node is idle.
# Everything lies in $1 but /etc/slurm, which is written anew: the executor plugin looks for it there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=$1
"$here/stop.sh" "$state"
rm -rf "$state"
install -d -m 0755 "$state" "$state/controller" /etc/slurm
memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
sed -e "s|@STATE@|$state|g" -e "s|@HOST@|$(hostname -s)|g" -e "s|@MEMORY@|$memory|g" "$here/slurm.conf.in" > /etc/slurm/slurm.conf
# Null devices stand in for GPUs: nobody opens them, but only for character devices SLURM sets CUDA_VISIBLE_DEVICES.
for card in 0 1; do mknod "$state/gpu$card" c 1 3; done
echo "NodeName=node1 Name=gpu File=$state/gpu[0-1]" > /etc/slurm/gres.conf
printf 'CgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\nConstrainDevices=no\n' > /etc/slurm/cgroup.conf
dd if=/dev/urandom of="$state/munge.key" bs=1024 count=1 status=none
chmod 0400 "$state/munge.key"
munged --force --socket="$state/munge.socket" --key-file="$state/munge.key" --pid-file="$state/munged.pid" \
    --log-file="$state/munged.log" --seed-file="$state/munge.seed"
slurmctld
for node in node1 node2 node3; do slurmd -N "$node"; done
for _ in $(seq 150); do
    [ "$(sinfo -h -N -o '%N %t' 2>/dev/null | sort -u | grep -c ' idle$')" = 3 ] && exit 0
    sleep 0.2
done
echo "SLURM did not come up; see $state/*.log" >&2
tail -n 20 "$state"/*.log >&2
exit 1
