#!/usr/bin/env bash
# task_test.sh PROGRAMS TASK FOLDER: a task is trained, monitored and judged by programs that do not
# know it by name.
set -euo pipefail
programs=$1 task=$2 folder=$3
rm -rf "$folder"
"$programs/solution_06" --task "$task" --monitor --output "$folder/output"
"$programs/checker" monitor "$folder/output" --output "$folder/monitor.html"
grep -q "$task" "$folder/monitor.html"
"$programs/checker" check 06 --solution --no-build --task "$task"
