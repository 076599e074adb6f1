#!/usr/bin/env bash
# Runs every command of the slides' sh blocks, in the project itself; those of README.md as well are
# run by its own test. A command that this script does not know fails the test.
# usage: commands_test.sh PROJECT SCRATCH_FOLDER
set -euo pipefail
cd "$1"
scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch/bin"
export PATH=$scratch/bin:$PATH NO_COLOR=1
if ! sinfo >/dev/null 2>&1; then cp checker/tests/sbatch_stand_in.sh "$scratch/bin/sbatch"; fi

if ! ./workbook render --check >"$scratch/render.log" 2>&1; then
  echo "not run, because steps/ holds edits"
  exit 77
fi
skipped=()
run() {
  echo "== $1"
  bash -euo pipefail -c "$1" >"$scratch/log" 2>&1 </dev/null || {
    tail -n 30 "$scratch/log"
    echo "FAILED: $1"
    exit 1
  }
}
commands_of() { awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$@" | sort -u; }

count=0
while IFS= read -r command; do
  count=$((count + 1))
  case $command in
    './workbook run 0'[1-7]*' -- '*) run "$command --max-steps 10" ;; # whole trainings take minutes
    './workbook run 0'[1-7]*) run "$command -- --max-steps 10" ;;
    './workbook check 0'[1-7]) run "$command || [ \$? = 1 ]" ;; # 1: something is still open
    './workbook hint '* | './workbook diff 0'* | './workbook list') run "$command" ;;
    './workbook reset 0'[1-7]) run "$command && ./workbook render --check" ;;
    './workbook slides '*)
      if ! [ -e .venv/.has-slides ]; then skipped+=("$command"); else run "$command"; fi ;;
    './workbook watch') run "$(dirname "$0")/watch_briefly.py" ;;
    './workbook lab down') ;; # with the next
    './workbook lab up')
      if ! ./workbook lab up slides-test >"$scratch/lab" 2>&1; then skipped+=("$command: $(tail -n 1 "$scratch/lab")")
      else run './workbook lab down slides-test'; fi ;;
    './workbook submit 0'[1-7]) run "$command --no-follow" ;;
    *) echo "FAILED: no test knows this command of the slides: $command"; exit 1 ;;
  esac
done < <(comm -23 <(commands_of slides/index.md slides/decks/*.md) <(commands_of README.md))

[ $count -ge 8 ] || { echo "FAILED: only $count commands found on slides"; exit 1; }
if [ ${#skipped[@]} != 0 ]; then
  printf 'not run: %s\n' "${skipped[@]}"
  exit 77
fi
