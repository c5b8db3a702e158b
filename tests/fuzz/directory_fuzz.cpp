// A whole Hugging Face directory: the files of a small model, any of them damaged, opened and loaded. The
// input is a sequence of files: a byte that picks the name, four bytes of length, the content.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "model/model.h"
#include "tests/support/temp_dir.h"
#include "weights/byte_cursor.h"
#include "weights/checkpoint.h"

namespace {

constexpr std::array<std::string_view, 12> kNames = {
    "config.json",           "model.safetensors",      "model.safetensors.index.json",
    "a.safetensors",         "b.safetensors",          "tokenizer.json",
    "tokenizer_config.json", "generation_config.json", "special_tokens_map.json",
    "chat_template.json",    "modules.json",           "1_Pooling/config.json"};

/// The model's directory with the files of the input, and no others.
class Directory {
 public:
  Directory() { std::filesystem::create_directory(path("1_Pooling")); }

  void assign(std::span<const std::byte> input) const {
    for (const std::string_view name : kNames) std::filesystem::remove(path(name));
    eider::ByteCursor cursor(input);
    while (cursor.remaining() > 0) {
      const auto file = cursor.number<std::uint8_t>("a file");
      const auto length = cursor.number<std::uint32_t>("a length");
      if (!file || !length) return;
      // A length beyond the end takes what there is: most damage would end here otherwise.
      const auto content = cursor.take(std::min<std::size_t>(*length, cursor.remaining()), "a content");
      directory_.write(kNames[*file % kNames.size()],
                       {reinterpret_cast<const char*>(content->data()), content->size()});
    }
  }

  void load() const {
    auto checkpoint = eider::Checkpoint::open(path(""), eider::RowCopies::kWhenAsked);
    if (!checkpoint) return;
    const auto model = eider::load_model(*checkpoint);
    if (!model) return;
    (*checkpoint)->preload({});
    for (const eider::Op& op : model->plan.ops)
      for (const eider::TensorView* weight : eider::weights_of(op)) {
        volatile std::byte sink = weight->data[0];
        sink = weight->data[weight->bytes() - 1];
        (void)sink;
      }
  }

 private:
  std::string path(std::string_view name) const { return directory_.file(name); }

  eider::test::TempDir directory_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Directory directory;
  directory.assign(std::as_bytes(std::span(data, size)));
  directory.load();
  return 0;
}
