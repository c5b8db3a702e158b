#!/usr/bin/env bash
# Installs what the build needs and builds the release preset: build/release/eider.
# Usage: scripts/build.sh [TARGET...]   all targets, or only those named
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

install_packages g++ cmake ninja-build pkg-config libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsimdjson-dev \
  libpcre2-dev libutf8proc-dev libxxhash-dev libedit-dev libboost1.81-dev libssl-dev prometheus-cpp-dev libgtest-dev
need_tool "${CXX:-c++}" "a C++20 compiler (GCC 12 or Clang 14, or later)"
need_tool cmake "CMake 3.25 or later"
need_tool ninja "Ninja"
build release "$@"
