# shellcheck shell=bash
# What the scripts share; sourced, not run. Leaves the shell in the repository's root folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# need_space DIR MIB WHAT: fails unless that much disk is free for WHAT.
need_space() {
  local free
  free=$(df -Pm "$1" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$2" ] || fail "no disk space: $3 needs $2 MiB in $1, which has $free MiB free"
}

# install_packages NAME...: installs the Debian packages that are missing; on other systems it does nothing, and whoever
# needs a tool asks for it with need_tool.
install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  local missing=() name
  for name in $(comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^install ok installed //p' | sort)); do
    missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "not root and no sudo: ask an administrator to apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  need_space / 1000 "installing ${missing[*]}"
  echo "installing Debian packages: ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    local reason
    reason=$(grep -m 1 '^E: ' "$log" || tail -n 1 "$log")
    rm -f "$log"
    fail "apt-get could not install ${missing[*]} (is there a network, and are you allowed to?): $reason"
  fi
  rm -f "$log"
}

# need_tool COMMAND WHAT: fails with one line where the command is missing.
need_tool() {
  command -v "$1" >/dev/null || fail "no $1: install $2 (README.md lists what eider needs)"
}

# build PRESET [TARGET...]: configures where that was not done yet, and builds.
build() {
  local preset=$1 targets=()
  shift
  [ $# -eq 0 ] || targets=(--target "$@")
  [ -f "build/$preset/build.ninja" ] || configure "$preset"
  cmake --build --preset "$preset" "${targets[@]}" | sed -u '/no work to do\|Re-checking globbed/d' >&2 ||
    fail "the $preset build failed, see above"
}

configure() {
  local preset=$1 log=build/$1/configure.log reason
  need_space . 2000 "the $preset build"
  mkdir -p "build/$preset"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    reason=$(grep -A 3 -m 1 'CMake Error' "$log" | tr -s '\n ' ' ') || true
    fail "cmake could not configure the $preset build: $reason(all of it: $log)"
  fi
}
