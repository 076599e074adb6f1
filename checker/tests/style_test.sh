#!/usr/bin/env bash
# The texts that people read are plain English, and style.py finds what is not.
# usage: style_test.sh PYTHON PROGRAM...
set -euo pipefail
cd "$(dirname "$0")"
if ! "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "skipped: Python 3.10 or newer is not installed"
  exit 77
fi
"$1" -B style_test.py
"$1" -B style_sources.py
"$1" -B style.py "${@:2}"
