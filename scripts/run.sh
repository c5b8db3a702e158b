#!/usr/bin/env bash
# Answers a prompt with SmolLM2-135M-Instruct; builds eider and fetches the model where that was not done yet.
# Usage: scripts/run.sh PROMPT [flags of eider run...]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -gt 0 ] || { echo 'usage: scripts/run.sh "Why is the sky blue?" [flags of eider run...]' >&2; exit 2; }
prompt=$1
shift
scripts/build.sh eider
model=${HOME:?is not set}/.cache/eider/models/SmolLM2-135M-Instruct.Q4_1.gguf
if [ ! -f "$model" ]; then
  install_packages python3 python3-pip
  need_tool python3 "Python 3 with pip"
  python3 scripts/fetch_model.py "$model"
fi
exec build/release/eider run -m "$model" -p "$prompt" "$@"
