#!/usr/bin/env bash
# Compares eider with the recorded figures of two real models, token by token, and prints a table (docs/TESTING.md).
# Usage: scripts/conformance.sh [FOLDER]   the folder of the model files [$EIDER_MODELS, else ~/.cache/eider/models]
models=$(realpath -m "${1:-${EIDER_MODELS:-$HOME/.cache/eider/models}}")
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/build.sh eider
need_tool python3 "Python 3"
exec python3 scripts/conformance.py build/release/eider "$models"
