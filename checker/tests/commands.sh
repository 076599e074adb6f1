#!/usr/bin/env bash
# For tests that run the commands of a document in the project itself: source it with the scratch
# folder set. A Slurm that answers is used; else a stand-in takes the job scripts.
# shellcheck shell=bash
rm -rf "$scratch" && mkdir -p "$scratch/bin"
export PATH=$scratch/bin:$PWD/.venv/bin:$PATH NO_COLOR=1
if ! sinfo >/dev/null 2>&1; then cp checker/tests/sbatch_stand_in.sh "$scratch/bin/sbatch"; fi
skipped=()

commands_of() { awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$@"; }

# Each once, in the order in which a reader meets them: README.md first.
commands_of_readmes() {
  local files
  mapfile -t files < <(find checker distributed_utils sbatch tasks -name README.md | sort)
  commands_of README.md "${files[@]}" | awk '!seen[$0]++'
}

is_as_given() { ./workbook render --check >"$scratch/render.log" 2>&1; }  # no edits in steps/

run() {
  echo "== $1"
  bash -euo pipefail -c "$1" >"$scratch/log" 2>&1 </dev/null || {
    tail -n 30 "$scratch/log"
    echo "FAILED: $1"
    exit 1
  }
}
