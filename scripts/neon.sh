#!/usr/bin/env bash
# Cross-builds the exactness tests for 64-bit ARM and runs them under qemu: every operation on NEON against the reference, and
# whole models against the hashes of their logits that x86-64 recorded. Installs a cross compiler, qemu and, below build/neon,
# ARM's libraries. Debian 12 only.
# Usage: scripts/neon.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# fetch_libraries FOLDER NAME...: unpacks Debian's ARM packages into FOLDER; the system's own package lists stay as they are.
fetch_libraries() {
  local folder=$1 work options package
  shift
  [ ! -f "$folder/complete" ] || return 0
  work=$(mktemp -d)
  mkdir -p "$folder" "$work/state/lists/partial" "$work/cache/archives/partial"
  options=(-q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State=$work/state"
    -o Dir::State::status=/dev/null -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  if ! (cd "$work" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$@") >"$work/log" 2>&1; then
    fail "apt-get could not fetch ARM's libraries: $(grep -m 1 '^E: ' "$work/log" || tail -n 1 "$work/log")"
  fi
  for package in "$work"/*.deb; do dpkg -x "$package" "$folder"; done
  rm -rf "$work"
  touch "$folder/complete"
}

install_packages g++-aarch64-linux-gnu qemu-user cmake ninja-build pkg-config
need_tool aarch64-linux-gnu-g++ "GCC for aarch64-linux-gnu"
need_tool qemu-aarch64 "qemu's user mode emulation"
fetch_libraries build/neon/sysroot libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 libcli11-dev nlohmann-json3-dev \
  libsimdjson-dev libsimdjson14 libpcre2-dev libpcre2-8-0 libpcre2-posix3 libutf8proc-dev libutf8proc2 libxxhash-dev libxxhash0 \
  libedit-dev libedit2 libboost1.81-dev libssl-dev libssl3 prometheus-cpp-dev libprometheus-cpp-core1.0 libgtest-dev

build neon backend_test model_test

# run PROGRAM FILTER: tests under qemu, which has every instruction that the kernels are compiled for.
run() {
  qemu-aarch64 -L /usr/aarch64-linux-gnu "build/neon/tests/$1" --gtest_brief=1 --gtest_filter="$2"
}
run model_test '*LogitHash*' &
models=$!
run backend_test 'CpuIsas*:*OpExactness*:OpFuzz*:Product.*:GoldenOps*:MoeRoute*:Rope*:Elementwise*' ||
  fail "operations differ, see above"
wait "$models" || fail "logits differ from those recorded on x86-64, see above"
