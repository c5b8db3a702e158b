#include "weights/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "weights/checkpoint_builder.h"
#include "weights/printable.h"

namespace eider {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// A Hugging Face directory by its configuration file.
Result<std::shared_ptr<const Checkpoint>> open_directory(const std::string& path, const fs::path& config) {
  const fs::path directory = config.parent_path();
  const fs::path index = directory / "model.safetensors.index.json";
  const fs::path single = directory / "model.safetensors";
  if (!is_there(index) && !is_there(single))
    return error("{}: neither model.safetensors nor model.safetensors.index.json is beside {}", path,
                 config.filename().string());
  return open_safetensors_checkpoint(path, config.string(), (is_there(index) ? index : single).string());
}

bool begins_with_gguf(const std::string& path) {
  const auto file = MappedFile::open(path);
  return file && file->bytes().size() >= 4 && std::memcmp(file->bytes().data(), "GGUF", 4) == 0;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open(const std::string& path, RowCopies row_copies) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const fs::path config = fs::path(path) / "config.json";
    if (!is_there(config))
      return error("{}: a directory without config.json; give a .gguf file or the directory of a model",
                   path);
    return open_directory(path, config);
  }
  const fs::path file(path);
  if (path.ends_with(".safetensors") || path.ends_with(kIndexSuffix))
    return open_safetensors_checkpoint(path, (file.parent_path() / "config.json").string(), path);
  if (path.ends_with(".json")) return open_directory(path, file);
  if (path.ends_with(".gguf") || begins_with_gguf(path)) return open_gguf_checkpoint(path, row_copies);
  if (!is_there(file)) return error("{}: no such file or directory", path);
  return error("{}: not a model; a .gguf or .safetensors file or a directory with config.json is", path);
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Result<TensorView> Checkpoint::get(std::string_view name, const Shape& shape) const {
  EIDER_TRY(const auto tensor, get_optional(name, shape));
  if (!tensor) return error("{}: tensor {} is missing", path_, printable(name));
  return *tensor;
}

Result<std::optional<TensorView>> Checkpoint::get_optional(std::string_view name, const Shape& shape) const {
  if (const auto data = data_tensors_.find(name); data != data_tensors_.end()) {
    const auto& [ignored, tensor] = *data;
    if (!tensor.problem.empty()) return error("{}: tensor {} {}", path_, printable(name), tensor.problem);
    return error("{}: tensor {} has dtype {}; weights must be F32, F16, BF16 or F8_E4M3", path_,
                 printable(name), tensor.dtype);
  }
  const TensorView* tensor = find(name);
  if (tensor == nullptr) return std::optional<TensorView>();
  if (tensor->shape != shape)
    return error("{}: tensor {} has shape {}, expected {}", path_, printable(name), tensor->shape.text(),
                 shape.text());
  return std::optional<TensorView>(*tensor);
}

void Checkpoint::make_ready(const TensorView& view) const {
  const auto found = copies_to_make_.find(view.data);
  if (found == copies_to_make_.end()) return;
  found->second();
  copies_to_make_.erase(found);
}

std::int64_t Checkpoint::mapped_bytes(const TensorView& view) const {
  const bool mapped = std::ranges::any_of(mapped_, [&](std::span<const std::byte> range) {
    return std::less_equal<>()(range.data(), view.data) &&
           std::less<>()(view.data, range.data() + range.size());
  });
  return mapped ? view.bytes() : 0;
}

void Checkpoint::release(const TensorView& view) const {
  if (const std::int64_t bytes = mapped_bytes(view); bytes > 0)
    drop_pages({view.data, static_cast<std::size_t>(bytes)});
}

void Checkpoint::preload(const std::function<bool(std::int64_t, std::int64_t)>& progress) const {
  touch_pages(progress);
  for (const auto& [place, make] : copies_to_make_) make();
  copies_to_make_.clear();
}

void Checkpoint::touch_pages(const std::function<bool(std::int64_t, std::int64_t)>& progress) const {
  constexpr std::size_t kPage = 4096;  // the smallest there is; larger pages are touched more than once
  constexpr std::size_t kChunk = std::size_t{16} << 20;
  std::int64_t total = 0;
  for (const auto& range : mapped_) total += static_cast<std::int64_t>(range.size());

  std::int64_t done = 0;
  std::int64_t reported = 0;
  for (const auto& range : mapped_) {
    for (std::size_t begin = 0; begin < range.size(); begin += kChunk) {
      const auto chunk = range.subspan(begin, std::min(kChunk, range.size() - begin));
      advise_read_ahead(chunk);
      for (std::size_t i = 0; i < chunk.size(); i += kPage) {
        [[maybe_unused]] const std::byte touched = *static_cast<const volatile std::byte*>(&chunk[i]);
      }
      done += static_cast<std::int64_t>(chunk.size());
      if (done - reported < static_cast<std::int64_t>(kChunk) && done != total) continue;
      reported = done;
      if (progress && !progress(done, total)) return;
    }
  }
}

}  // namespace eider
