#!/usr/bin/env bash
# Runs a Python program of the project with the tools that ./workbook slides installs; without them
# the test is skipped.
# usage: with_tools.sh PROJECT PROGRAM [ARGUMENT...]
set -eu
cd "$1"
shift
if ! [ -e .venv/.has-slides ]; then
  echo "what builds the slides is not installed. Fix: ./workbook slides --build-only"
  exit 77
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/slides:$PWD/slides/ext
exec .venv/bin/python3 "$@"
