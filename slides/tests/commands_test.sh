#!/usr/bin/env bash
# Runs every command of the sh blocks of the slides and of steps/README.md, in the project itself. Commands that other
# README files have too are left to their test. A command that this script does not know fails the test.
# usage: commands_test.sh PROJECT SCRATCH_FOLDER
set -euo pipefail
cd "$1"
scratch=$2
. checker/tests/commands.sh

if ! is_as_given; then
  echo "not run, because steps/ holds edits"
  exit 77
fi
count=0
while IFS= read -r command; do
  count=$((count + 1))
  case $command in
    './workbook run 12 '*' --memory-limit '*) # as given the model does not fit
      run "! $command --max-steps 2 >$scratch/limited 2>&1 && grep 'out of memory' $scratch/limited" ;;
    './workbook run '[01][0-9]*' -- '*) run "$command --max-steps 10" ;; # whole trainings take minutes
    './workbook run '[01][0-9]*) run "$command -- --max-steps 10" ;;
    './workbook check '[01][0-9]) run "$command || [ \$? = 1 ]" ;; # 1: something is still open
    './workbook hint '* | './workbook diff '* | './workbook list') run "$command" ;;
    './workbook reset 0'[1-7]) run "$command && ./workbook render --check" ;;
    './workbook bench scaling '*) run "$command --output $scratch/study" ;;
    './workbook monitor 01 06') # of runs that may not have been
      run "for step in 01 06; do ./workbook run \$step -- --max-steps 10; done; $command --output $scratch/comparison.html" ;;
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
done < <(comm -23 <(commands_of slides/index.md slides/decks/*.md steps/README.md | sort -u) <(commands_of_readmes | sort -u))

[ $count -ge 8 ] || { echo "FAILED: only $count commands found on slides"; exit 1; }
if [ ${#skipped[@]} != 0 ]; then
  printf 'not run: %s\n' "${skipped[@]}"
  exit 77
fi
