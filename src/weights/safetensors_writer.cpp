#include "weights/safetensors_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace eider {
namespace {

constexpr const char* kWeightsFile = "model.safetensors";

const char* dtype_of(Format format) {
  switch (format) {
    case Format::kF32:
      return "F32";
    case Format::kF16:
      return "F16";
    case Format::kBF16:
      return "BF16";
    case Format::kFP8_E4M3:
      return "F8_E4M3";
    default:
      check_failed(__FILE__, __LINE__, "a format that safetensors files do not have");
  }
}

/// Each weight, and after it its scales, as a tensor of the file.
std::vector<TensorView> with_scales(const std::vector<TensorView>& tensors) {
  std::vector<TensorView> all;
  for (const TensorView& tensor : tensors) {
    all.push_back(tensor);
    const BlockScales& scales = tensor.scales;
    if (scales.values == nullptr) continue;
    EIDER_CHECK_EQ(scales.first_row, 0);
    const Shape shape = {(tensor.rows() + scales.block_rows - 1) / scales.block_rows, scales.column_blocks};
    all.push_back(
        {tensor.name + "_scale_inv", Format::kF32, shape, reinterpret_cast<const std::byte*>(scales.values)});
  }
  return all;
}

std::string header(const std::vector<TensorView>& tensors) {
  nlohmann::json json = {{"__metadata__", {{"format", "pt"}}}};
  std::int64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    nlohmann::json shape = nlohmann::json::array();
    for (int i = 0; i < tensor.shape.rank(); ++i) shape.push_back(tensor.shape[i]);
    json[tensor.name] = {{"dtype", dtype_of(tensor.format)},
                         {"shape", std::move(shape)},
                         {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the data
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

Status write_weights(const std::string& path, const std::vector<TensorView>& tensors, std::int64_t total,
                     const WriteProgress& progress) {
  EIDER_TRY(NewFile file, NewFile::create(path, total, progress));
  EIDER_TRY_STATUS(file.write(header(tensors)));
  for (const TensorView& tensor : tensors)
    EIDER_TRY_STATUS(file.write_data(
        {reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes())}));
  return file.commit();
}

Status write_json(const std::string& path, const nlohmann::json& json) {
  EIDER_TRY(NewFile file, NewFile::create(path));
  EIDER_TRY_STATUS(file.write(json.dump(2) + "\n"));
  return file.commit();
}

}  // namespace

Status write_model_directory(const std::string& directory, const nlohmann::json& config,
                             const std::vector<TensorView>& tensors, const WriteProgress& progress) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) return error("{}: cannot make the directory: {}", directory, failure.message());
  const std::vector<TensorView> all = with_scales(tensors);
  nlohmann::json weight_map = nlohmann::json::object();
  std::int64_t total = 0;
  for (const TensorView& tensor : all) {
    weight_map[tensor.name] = kWeightsFile;
    total += tensor.bytes();
  }
  const auto path = [&](const char* name) { return (std::filesystem::path(directory) / name).string(); };
  EIDER_TRY_STATUS(write_weights(path(kWeightsFile), all, total, progress).context(path(kWeightsFile)));
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
  const std::string index_path = path("model.safetensors.index.json");
  EIDER_TRY_STATUS(write_json(index_path, index).context(index_path));
  return write_json(path("config.json"), config).context(path("config.json"));
}

}  // namespace eider
