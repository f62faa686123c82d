#!/usr/bin/env bash
# Stop what start.sh started in $1, by its recorded process numbers.
set -uo pipefail
state=$1
alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
if alive "$state/slurmctld.pid"; then timeout 10 scancel --user=root >/dev/null 2>&1; fi  # waits long where no controller answers
pids=()
for file in "$state"/slurmd-*.pid "$state/slurmctld.pid" "$state/munged.pid"; do
    alive "$file" && pids+=("$(cat "$file")")
done
[ ${#pids[@]} -gt 0 ] || exit 0
kill "${pids[@]}" 2>/dev/null
for _ in $(seq 100); do kill -0 "${pids[@]}" 2>/dev/null || exit 0; sleep 0.1; done
kill -9 "${pids[@]}" 2>/dev/null
exit 0
