#!/usr/bin/env bash
# Builds the libFuzzer targets with address and undefined-behaviour sanitizers and runs each one for a while.
# Usage: scripts/fuzz.sh [SECONDS]   for each target [60]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ && $seconds -gt 0 ]] || { echo "usage: scripts/fuzz.sh [SECONDS]" >&2; exit 2; }
scripts/build.sh eider  # for its packages
install_packages clang
need_tool clang++ "Clang 14 or later"
mapfile -t targets < <(basename -s .cpp -a tests/fuzz/*_fuzz.cpp)
build fuzz "${targets[@]}"

# Inputs that lead to new code are kept from run to run in build/fuzz/corpus; a finding is left in build/fuzz/findings.
mkdir -p build/fuzz/findings
failures=0
for name in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$name log=build/fuzz/findings/$name.log
  mkdir -p "$corpus"
  cp -n tests/fuzz/seeds/"$name"/* "$corpus" 2>/dev/null || true
  if "build/fuzz/tests/fuzz/$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$name-" "$corpus" >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-24s ok      %s runs in %s s\n' "$name" "$runs" "$seconds"
  else
    failures=$((failures + 1))
    printf '%-24s FAILED  %s (all of it: %s)\n' "$name" "$(grep -m 1 -E 'ERROR|runtime error' "$log" || tail -n 1 "$log")" "$log"
  fi
done
[ "$failures" -eq 0 ] || fail "$failures targets have findings"
