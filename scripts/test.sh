#!/usr/bin/env bash
# Installs what the tests need, builds the release preset and runs every test.
# Usage: scripts/test.sh [flags of ctest...]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/build.sh
install_packages python3 clang-format
need_tool python3 "Python 3"
ctest --preset release -j "$(nproc)" "$@"
