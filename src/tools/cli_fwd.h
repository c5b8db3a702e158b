// The types of CLI11 that headers name. CLI11 takes seconds to compile: only what declares flags itself
// includes it, and commands declare theirs with the functions of flags.h.
#pragma once

namespace CLI {
class App;
class Formatter;
class Option;
}  // namespace CLI
