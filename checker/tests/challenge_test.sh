#!/usr/bin/env bash
# Judges three programs as answers to the challenge: a finished one, one with a mistake, and one that
# does not compile. usage: challenge_test.sh CHECKER PROJECT SCRATCH_FOLDER
set -euo pipefail
checker=$1 solution=$2/solutions/06_rank_zero/train.cpp scratch=$3
rm -rf "$scratch" && mkdir -p "$scratch"
export NO_COLOR=1

# judge NAME STATUS TEXT: the verdict on NAME.cpp must end so, and hold the text.
judge() {
  local status=0
  "$checker" challenge --file "$scratch/$1.cpp" >"$scratch/$1.log" 2>&1 || status=$?
  if [ $status != "$2" ] || ! grep -qF -- "$3" "$scratch/$1.log"; then
    cat "$scratch/$1.log"
    echo "FAILED: $1 ended with $status instead of $2, or did not say: $3"
    exit 1
  fi
}

# What is judged has no TODOs, as what is handed out.
grep -v '^ *// TODO' "$solution" >"$scratch/finished.cpp"
judge finished 0 'The challenge is done'
sed 's/, .pad = false//' "$scratch/finished.cpp" >"$scratch/padded.cpp"
cmp -s "$scratch/finished.cpp" "$scratch/padded.cpp" && { echo "FAILED: nothing was broken"; exit 1; }
judge padded 1 'The first mistake is:'
judge padded 1 'The course explains it at TODO 4, step 03_sampler.'
sed 's/set_epoch(epoch)/set_epoch(epok)/' "$scratch/finished.cpp" >"$scratch/misspelt.cpp"
judge misspelt 1 'misspelt.cpp:'
judge misspelt 1 'does not compile'
