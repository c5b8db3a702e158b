// Config: the model's configuration under the key names of published Hugging Face config.json files, whatever
// it was read from. Readers normalise into it (config_style.cpp); models read from it and refuse what they do
// not know.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace eider {

class Config {
 public:
  /// Takes an object; `origin` names its file in errors.
  Config(nlohmann::json object, std::string origin);
  Config(const Config&);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  /// Present and not null.
  bool has(std::string_view key) const;

  /// The key must be present and of that kind; errors read "config.json: hidden_size: expected an integer,
  /// found ...".
  Result<std::int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string> string(std::string_view key) const;
  Result<std::vector<std::string>> strings(std::string_view key) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  Result<Config> object(std::string_view key) const;

  /// As above with a default for a key that is absent or null; a value of the wrong kind is an error all the
  /// same.
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;

  /// An integer in 1..limit, or an error: sizes are checked where they are read.
  Result<std::int64_t> size(std::string_view key, std::int64_t limit = std::int64_t{1} << 24) const;

  const nlohmann::json& json() const { return *object_; }
  const std::string& origin() const { return origin_; }

 private:
  std::unique_ptr<nlohmann::json> object_;
  std::string origin_;
};

}  // namespace eider
