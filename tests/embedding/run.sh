#!/usr/bin/env bash
# Sets up .venv-embedding with what the container needs, and runs its tests there. Arguments go to
# pytest instead of the tests' folder; without any, only what needs a Docker engine is left out.
set -euo pipefail
cd "$(dirname "$0")/../.."
container=functions/embedding
pins=("$container/requirements.txt" "$container/requirements-build.txt" tests/embedding/requirements.txt)
stamp=.venv-embedding/.$(cat "${pins[@]}" <(pwd -P) | cksum | cut -d ' ' -f 1)
if [ ! -e "$stamp" ]; then
  for python in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
    if "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      break
    fi
    python=
  done
  if [ -z "$python" ]; then
    echo "Python 3.11 or newer with its venv module is needed." >&2
    exit 1
  fi
  echo "Installing into .venv-embedding with $python: once, and only below this folder"
  "$python" -m venv --clear .venv-embedding
  .venv-embedding/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    "${pins[@]/#/--requirement=}"
  touch "$stamp"
fi
if [ $# -eq 0 ]; then
  set -- tests/embedding --ignore=tests/embedding/test_image.py
fi
exec .venv-embedding/bin/python -m pytest --confcutdir=tests/embedding "$@"
