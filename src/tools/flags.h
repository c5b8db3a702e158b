// Flags that several commands share, and how a flag's value is read: whole, in its range, or refused by one
// line that names the flag, the value and what is allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/fp8_form.h"
#include "base/result.h"
#include "ops/kv_layout.h"
#include "runtime/sampler.h"
#include "tools/cli_fwd.h"
#include "weights/generation_config.h"

namespace eider {

/// Where prepared weights are kept.
struct CacheFlags {
  bool off = false;
  std::optional<std::string> directory;  ///< absent: ~/.cache/eider/prepared
  std::optional<std::int64_t> budget;    ///< bytes; absent: half of the free disk
};

/// How a model is loaded and run.
struct EngineFlags {
  std::string model;
  std::optional<std::int64_t> context;  ///< absent: the model's own, or what memory allows
  std::optional<int> threads;           ///< absent: Machine::default_threads()
  std::int64_t max_batch_tokens = 512;
  KvType kv_type = KvType::kF16;
  std::string backend = "cpu";
  std::optional<std::string> isa;
  std::optional<Fp8Form> fp8_as;  ///< absent: the faster one on this machine
  CacheFlags cache;
};

/// How tokens are drawn; `options.seed` counts only where a seed was given.
struct SamplingFlags {
  SamplerOptions options;
  std::optional<std::uint64_t> seed;
  std::set<std::string> given;  ///< the flags on the command line, as "--top-k"
};

/// Takes what the model's makers advise for what no flag says.
void take_advice(const GenerationConfig& advice, SamplingFlags& flags);

/// How --help calls the flags that belong to no group, and the engine's; bounds that several flags share.
inline constexpr const char* kOptionsGroup = "Options";
inline constexpr const char* kEngineGroup = "Engine";
inline constexpr std::int64_t kMaxThreads = 1024;
inline constexpr std::int64_t kMaxBatchTokens = 65536;

/// A command of the program, of which --help says `description` and, after the flags, `footer`. `choose` is
/// called when it is the one on the command line and its flags are read; its error is one of the command
/// line.
CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& footer, std::function<Status()> choose);
/// A command that does nothing itself: one of those that are added to it must follow.
CLI::App& add_command_group(CLI::App& program, const std::string& name, const std::string& description,
                            const std::string& footer);

/// Any number of words that stand by themselves, each `type` in the help.
void add_words(CLI::App& command, const std::string& name, const std::string& type,
               std::vector<std::string>& words, const std::string& help);

/// -m
void add_model_flag(CLI::App& command, EngineFlags& flags,
                    const std::string& help =
                        "A .gguf file (of a split one, the first part), or a Hugging Face "
                        "directory");
/// -c
void add_context_flag(CLI::App& command, EngineFlags& flags);
/// -t
void add_threads_flag(CLI::App& command, EngineFlags& flags);
/// -t, -ub, and those of add_backend_flags()
void add_engine_flags(CLI::App& command, EngineFlags& flags);
/// --fp8-as
void add_fp8_flag(CLI::App& command, EngineFlags& flags);
/// --kv-type, --backend, --isa, --fp8-as, and those of add_cache_flags() with --no-weight-cache
void add_backend_flags(CLI::App& command, EngineFlags& flags);
/// --weight-cache
void add_cache_directory_flag(CLI::App& command, CacheFlags& flags);
/// That, and --cache-size
void add_cache_flags(CLI::App& command, CacheFlags& flags);
/// --temp to --seed
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

/// -n
void add_predict_flag(CLI::App& command, std::int64_t& max_tokens);

/// A flag that takes one value, `type` in its help. `parse` stores the value or says what is allowed. Given
/// again, the last value counts.
CLI::Option* add_value_flag(CLI::App& command, const std::string& names, const std::string& type,
                            std::function<Status(const std::string&)> parse, const std::string& help,
                            const std::string& group = kOptionsGroup);

/// The same, but each value counts where it is given again.
void add_repeated_flag(CLI::App& command, const std::string& names, const std::string& type,
                       std::function<Status(const std::string&)> parse, const std::string& help,
                       const std::string& group = kOptionsGroup);

/// A flag that takes two values.
void add_pair_flag(CLI::App& command, const std::string& names, const std::string& type,
                   std::vector<std::string>& values, const std::string& help,
                   const std::string& group = kOptionsGroup);

/// A flag whose value may be any text.
void add_text_flag(CLI::App& command, const std::string& names, const std::string& type,
                   std::optional<std::string>& value, const std::string& help,
                   const std::string& group = kOptionsGroup);

/// A flag without a value.
void add_switch(CLI::App& command, const std::string& names, bool& on, const std::string& help,
                const std::string& group = kOptionsGroup);

/// "20G", "512M", "1.5T", "4096": bytes, in powers of 1024.
Status parse_size(const std::string& text, std::optional<std::int64_t>& bytes);

/// A flag for an integer in low..high.
CLI::Option* add_integer_flag(CLI::App& command, const std::string& names,
                              std::function<void(std::int64_t)> store, std::int64_t low, std::int64_t high,
                              const std::string& help, const std::string& group = kOptionsGroup);

/// A flag of a command line by its long name, dashes included, and words that give it again.
struct GivenFlag {
  std::string name;
  std::vector<std::string> words;
};
/// The flags that the command line gives `command`.
std::vector<GivenFlag> given_flags(const CLI::App& command);
/// The flags that `words` give by themselves, of those that `add_flags` adds.
Result<std::vector<GivenFlag>> parse_words(const std::function<void(CLI::App&)>& add_flags,
                                           std::vector<std::string> words);

/// The flags of add_sampling_flags() and add_predict_flag() as settings of a running chat.
struct Setting {
  std::string name;  ///< without dashes
  std::string help;  ///< with the value that it has
};
std::vector<Setting> chat_settings(SamplingFlags sampling, std::int64_t max_tokens);
/// Sets one by its name and by the rules of the flag; where that fails, nothing is changed.
Status change_setting(const std::string& name, const std::string& value, SamplingFlags& sampling,
                      std::int64_t& max_tokens);

/// "-ub" is how people know --ubatch-size, and "-np" --parallel, but CLI11 reads them as -u -b: spells them
/// out.
std::string spell_out_flag(std::string argument);

}  // namespace eider
