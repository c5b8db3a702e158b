#include "weights/gguf_parts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "weights/printable.h"

namespace eider {
namespace {

/// A path of the form <stem>-00001-of-00003.gguf.
struct SplitName {
  std::string stem;
  std::int64_t part;  // from 1
  std::int64_t count;
};

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr std::size_t kDigits = 5;

/// The five digits at the end of `text`, which are cut off.
std::optional<std::int64_t> take_digits(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigits);
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc() || end != digits.data() + digits.size() || number < 0) return std::nullopt;
  text.remove_suffix(kDigits);
  return number;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  if (!take_suffix(path, kExtension)) return std::nullopt;
  const std::optional<std::int64_t> count = take_digits(path);
  if (!count || !take_suffix(path, kOf)) return std::nullopt;
  const std::optional<std::int64_t> part = take_digits(path);
  if (!part || !take_suffix(path, "-")) return std::nullopt;
  return SplitName{std::string(path), *part, *count};
}

std::string part_path(const SplitName& name, std::int64_t part) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.stem, part, name.count);
}

Status check_all_present(const SplitName& name) {
  constexpr std::int64_t kMostNamed = 5;
  std::string missing;
  std::int64_t missing_count = 0;
  for (std::int64_t part = 1; part <= name.count; ++part) {
    const std::string path = part_path(name, part);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) continue;
    if (++missing_count <= kMostNamed) missing += (missing.empty() ? "" : ", ") + path;
  }
  if (missing_count == 0) return {};
  if (missing_count > kMostNamed) missing += fmt::format(" and {} more", missing_count - kMostNamed);
  return error("{} of {} parts are missing: {}", missing_count, name.count, missing);
}

Result<GgufPart> open_part(const std::string& path) {
  EIDER_TRY(auto file, MappedFile::open(path));
  EIDER_TRY(auto header, GgufFile::parse(file.bytes()).context(path));
  return GgufPart{std::move(file), std::move(header)};
}

/// The key's value must be `expected`.
Status check_key(const GgufPart& part, std::string_view key, std::int64_t expected) {
  EIDER_TRY(const auto value, part.header.integer(key).context(part.file.path()));
  if (value == expected) return {};
  return error("{}: metadata key {} is {}, expected {}", part.file.path(), key,
               value ? std::to_string(*value) : "missing", expected);
}

/// The first part's split.count against its file's name.
Status check_count(const std::optional<SplitName>& name, const std::optional<std::int64_t>& stored) {
  if (stored.value_or(1) == (name ? name->count : 1)) return {};
  const std::string key = stored ? std::to_string(*stored) : "missing";
  const std::string parts = name ? fmt::format("{} parts", name->count) : "nothing of parts";
  return error(
      "metadata key split.count is {}, but the file's name says {}; parts are named NAME-00001-of-0000N.gguf",
      key, parts);
}

/// Tensors of all parts: as many as announced, none twice.
Status check_tensors(const std::vector<GgufPart>& parts) {
  std::unordered_set<std::string_view> names;
  const auto add_names = [&](const GgufPart& part, const auto& tensors) -> Status {
    for (const auto& tensor : tensors) {
      if (!names.insert(tensor.name).second)
        return error("{}: tensor {} is also in an earlier part", part.file.path(), printable(tensor.name));
    }
    return {};
  };
  for (const GgufPart& part : parts) {
    EIDER_TRY_STATUS(add_names(part, part.header.tensors()));
    EIDER_TRY_STATUS(add_names(part, part.header.data_tensors()));
  }
  for (const GgufPart& part : parts)
    EIDER_TRY_STATUS(check_key(part, "split.tensors.count", static_cast<std::int64_t>(names.size())));
  return {};
}

}  // namespace

Result<std::vector<GgufPart>> open_gguf_parts(const std::string& path) {
  std::vector<GgufPart> parts;
  EIDER_TRY(auto first, open_part(path));
  EIDER_TRY(const auto stored_count, first.header.integer("split.count").context(path));
  const std::int64_t count = stored_count.value_or(1);
  parts.push_back(std::move(first));

  const std::optional<SplitName> name = parse_split_name(path);
  EIDER_TRY_STATUS(check_count(name, stored_count).context(path));
  if (count == 1) return parts;
  if (name->part != 1)
    return error("{}: part {} of {}; give the first, {}", path, name->part, count, part_path(*name, 1));

  EIDER_TRY_STATUS(check_all_present(*name).context(path));
  EIDER_TRY_STATUS(check_key(parts.front(), "split.no", 0));
  for (std::int64_t part = 2; part <= count; ++part) {
    EIDER_TRY(auto next, open_part(part_path(*name, part)));
    EIDER_TRY_STATUS(check_key(next, "split.count", count));
    EIDER_TRY_STATUS(check_key(next, "split.no", part - 1));
    parts.push_back(std::move(next));
  }
  EIDER_TRY_STATUS(check_tensors(parts));
  return parts;
}

const TensorView* find_tensor(const std::vector<GgufPart>& parts, std::string_view name) {
  for (const GgufPart& part : parts) {
    const auto found = std::ranges::find(part.header.tensors(), name, &TensorView::name);
    if (found != part.header.tensors().end()) return &*found;
  }
  return nullptr;
}

}  // namespace eider
