// A .safetensors file of any bytes: its header, and a checkpoint made of it beside two configurations.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tests/support/temp_dir.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace {

/// A model's directory whose weights are the input.
class Directory {
 public:
  Directory() {
    directory_.write("config.json", R"({"model_type": "gemma3_text"})");
    directory_.write("experts.json", R"({"model_type": "qwen3_moe", "num_experts": 2})");
  }
  void assign(std::string_view weights) const { directory_.write("model.safetensors", weights); }
  void open(const char* config) const {
    const auto checkpoint = eider::Checkpoint::open(directory_.file(config));
    if (!checkpoint) return;
    for (const auto& [name, tensor] : (*checkpoint)->tensors()) {
      if (tensor.bytes() == 0) continue;
      volatile std::byte sink = tensor.data[0];
      sink = tensor.data[tensor.bytes() - 1];
      (void)sink;
    }
  }

 private:
  eider::test::TempDir directory_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Most inputs end here, before the file system is asked.
  if (!eider::SafetensorsFile::parse(std::as_bytes(std::span(data, size)))) return 0;
  static const Directory directory;
  directory.assign(std::string_view(reinterpret_cast<const char*>(data), size));
  directory.open("config.json");
  directory.open("experts.json");
  return 0;
}
