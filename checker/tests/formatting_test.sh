#!/usr/bin/env bash
# All C++ is as clang-format would have it, but for what students edit (rendered files are checked
# through the course's fresh rendering). usage: formatting_test.sh PROJECT
set -euo pipefail
cd "$1"
for program in clang-format-14 clang-format none; do
  if "$program" --version 2>/dev/null | grep -q 'version 14'; then break; fi
done
if [ "$program" = none ]; then
  echo "skipped: clang-format 14 is not installed, and other versions format differently"
  exit 77
fi
find distributed_utils tasks checker/src checker/tests solutions \
  \( -name '*.cpp' -o -name '*.hpp' \) -print0 | xargs -0 "$program" --dry-run -Werror
