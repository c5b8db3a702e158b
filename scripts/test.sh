#!/usr/bin/env bash
# Installs what the tests need, builds the release preset and runs every test.
# Usage: scripts/test.sh [flags of ctest...]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/build.sh
install_packages python3 python3-venv clang-format
need_tool python3 "Python 3"
# The clients that tests/tools/serve_client_test.py drives the server with; without a network it says SKIP.
if [ ! -f build/clients/complete ]; then
  if python3 -m venv build/clients && build/clients/bin/pip install -q openai anthropic; then
    touch build/clients/complete
  else
    echo "the openai and anthropic packages could not be installed; their tests will be skipped" >&2
  fi
fi
ctest --preset release -j "$(nproc)" "$@"
