#!/usr/bin/env bash
# Install Debian's packages for a SLURM on one machine (as root; nothing to do where they are there).
set -euo pipefail
for program in slurmctld slurmd sbatch munged; do
    command -v "$program" >/dev/null || missing=1
done
[ -n "${missing-}" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge >/dev/null
