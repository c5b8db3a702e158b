// Checkpoint from GGUF files.
#include <utility>

#include "weights/checkpoint_builder.h"
#include "weights/gguf_config.h"
#include "weights/gguf_parts.h"
#include "weights/gguf_tensors.h"
#include "weights/gguf_vocabulary.h"

namespace eider {
namespace {

Result<std::shared_ptr<const Checkpoint>> read_parts(const std::string& path, std::vector<GgufPart> parts,
                                                     RowCopies row_copies) {
  const GgufFile& first = parts.front().header;
  EIDER_TRY(const auto* architecture, gguf_architecture(first));
  EIDER_TRY(auto config, gguf_config(*architecture, parts));
  CheckpointBuilder builder(
      path, fmt::format("GGUF v{}, {} part{}", first.version(), parts.size(), parts.size() == 1 ? "" : "s"),
      std::move(config), row_copies);

  EIDER_TRY(PoolingConfig pooling, gguf_pooling(first, architecture->name));
  builder.set_pooling(std::move(pooling));
  // A file may do without a tokenizer; one that has any must have a whole one.
  if (first.find("tokenizer.ggml.model") != nullptr) {
    EIDER_TRY(auto vocabulary, read_vocabulary(first));
    builder.set_vocabulary(std::move(vocabulary));
  }
  EIDER_TRY(auto tensors, GgufTensors::create(*architecture, builder));
  for (GgufPart& part : parts) {
    for (const TensorView& tensor : part.header.tensors()) {
      EIDER_TRY_STATUS(tensors.add(tensor));
      builder.will_read(tensor);
    }
    for (const DataTensor& tensor : part.header.data_tensors()) EIDER_TRY_STATUS(tensors.add_data(tensor));
    builder.keep(std::move(part.file));
  }
  return std::move(builder).finish();
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_gguf_checkpoint(const std::string& path,
                                                               RowCopies row_copies) {
  EIDER_TRY(auto parts, open_gguf_parts(path));
  return read_parts(path, std::move(parts), row_copies).context(path);
}

}  // namespace eider
