#!/usr/bin/env bash
# shellcheck disable=SC2016  # commands are looked for as they stand in the README
# Runs every command of the README files' sh blocks, in the project itself. The slides' own test runs those of
# slides/ and steps/. A command that this script does not know fails the test, so that none is added without being run.
# usage: readme_test.sh PROJECT SCRATCH_FOLDER
set -euo pipefail
cd "$1"
scratch=$2
. checker/tests/commands.sh

edited=no
is_as_given || edited=yes
count=0
while IFS= read -r command; do
  count=$((count + 1))
  case $command in
    './workbook bench') run "$command --help" ;; # minutes, and alone on the machine
    './workbook watch')
      if [ $edited = yes ]; then skipped+=("$command"); else run slides/tests/watch_briefly.py; fi ;;
    './workbook start' | './workbook run 0'[1-7]' --world '?) # whole trainings take minutes
      if [ $edited = yes ]; then skipped+=("$command"); else run "$command -- --max-steps 100"; fi ;;
    './workbook run 0'[1-7]* | './workbook build')
      if [ $edited = yes ] && [[ $command != *--solution* ]]; then skipped+=("$command"); else run "$command"; fi ;;
    './workbook doctor') run "$command || [ \$? = 1 ]" ;; # 1: something is to be fixed
    './workbook prefetch')
      if [ $edited = yes ] || ! torchrun --help >/dev/null 2>&1; then skipped+=("$command"); else run "$command"; fi ;;
    './workbook submit 0'[1-7])
      if [ $edited = yes ]; then skipped+=("$command"); else run "$command --no-follow"; fi ;;
    './workbook monitor 0'[1-7]) # of the runs above
      if [ $edited = yes ]; then skipped+=("$command"); else run "$command"; fi ;;
    './workbook slides '*)
      if ! [ -e .venv/.has-slides ]; then skipped+=("$command"); else run "$command"; fi ;;
    './workbook pack') run "mkdir -p $scratch/hand-ins && $command --output $scratch/hand-ins/alice.tar.gz" ;;
    './workbook grade hand-ins --output results') # in boxes, where those can be
      if ! bwrap --ro-bind / / true 2>/dev/null; then skipped+=("$command"); else run "./workbook grade $scratch/hand-ins --output $scratch/results"; fi ;;
    './workbook run c'*) run "$command --solution" ;;
    './workbook check 0'* | './workbook check c'*) run "$command || [ \$? = 1 ]" ;; # 1: something is still open
    './workbook list' | './workbook hint '* | './workbook diff '* | './workbook progress' | 'eval "$(./workbook site)"' | 'sbatch sbatch/'* | 'cmake '*) run "$command" ;;
    'torchrun '*)
      if ! torchrun --help >/dev/null 2>&1; then skipped+=("$command"); else run "./workbook run 06 --solution -- --max-steps 1 && OMP_NUM_THREADS=1 $command --output $scratch/output"; fi ;;
    *) echo "FAILED: no test knows this command of the README files: $command"; exit 1 ;;
  esac
done < <(commands_of_readmes)

[ $count -ge 12 ] || { echo "FAILED: only $count commands found in README files"; exit 1; }
if [ ${#skipped[@]} != 0 ]; then
  printf 'not run, because steps/ holds edits, or torchrun or boxes are missing: %s\n' "${skipped[@]}"
  exit 77
fi
