#include "weights/checkpoint_builder.h"

#include <utility>

#include "weights/printable.h"

namespace eider {

CheckpointBuilder::CheckpointBuilder(std::string path, std::string source, Config config,
                                     RowCopies row_copies)
    : checkpoint_(new Checkpoint(std::move(config))), row_copies_(row_copies) {
  checkpoint_->path_ = std::move(path);
  checkpoint_->source_ = std::move(source);
}

void CheckpointBuilder::keep(MappedFile file) {
  checkpoint_->files_.push_back(std::make_shared<const MappedFile>(std::move(file)));
}

void CheckpointBuilder::will_read(const TensorView& source) {
  checkpoint_->mapped_.emplace_back(source.data, static_cast<std::size_t>(source.bytes()));
}

TensorView CheckpointBuilder::own(OwnedTensor tensor) {
  checkpoint_->storage_.push_back(std::make_shared<const Buffer>(std::move(tensor.buffer)));
  return std::move(tensor.view);
}

TensorView CheckpointBuilder::own(OwnedTensor tensor, std::function<void(std::byte*)> fill) {
  std::byte* bytes = tensor.buffer.data();
  if (row_copies_ == RowCopies::kAtOnce)
    fill(bytes);
  else
    checkpoint_->copies_to_make_.emplace(bytes, [bytes, fill = std::move(fill)] { fill(bytes); });
  return own(std::move(tensor));
}

Status CheckpointBuilder::add(TensorView tensor) {
  checkpoint_->weight_bytes_ += tensor.bytes();
  std::string name = tensor.name;
  const auto [position, added] = checkpoint_->tensors_.emplace(std::move(name), std::move(tensor));
  if (!added) return error("tensor {} appears twice", printable(position->first));
  return {};
}

Status CheckpointBuilder::check_experts(const TensorView& fused) const {
  EIDER_TRY(const auto num_experts, config().integer("num_experts"));
  // Experts of no bytes would each take memory all the same.
  if (fused.shape.rank() != 3 || fused.shape[0] != num_experts || num_experts > kMostExperts ||
      fused.bytes() == 0)
    return error("tensor {}: shape {}, expected the matrices of {} experts", printable(fused.name),
                 fused.shape.text(), num_experts);
  return {};
}

Status CheckpointBuilder::add_experts(const TensorView& fused, std::string_view prefix,
                                      std::string_view projection) {
  EIDER_TRY_STATUS(check_experts(fused));
  for (std::int64_t expert = 0; expert < fused.shape[0]; ++expert)
    EIDER_TRY_STATUS(
        add(slice_matrix(fused, expert, fmt::format("{}.{}.{}.weight", prefix, expert, projection))));
  return {};
}

Status CheckpointBuilder::add_gate_up_experts(const TensorView& fused, std::string_view prefix) {
  EIDER_TRY_STATUS(check_experts(fused));
  if (fused.shape[1] % 2 != 0)
    return error("tensor {}: shape {}, expected as many gate as up rows", printable(fused.name),
                 fused.shape.text());
  const std::int64_t rows = fused.shape[1] / 2;
  for (std::int64_t expert = 0; expert < fused.shape[0]; ++expert) {
    const TensorView both = slice_matrix(fused, expert, fused.name);
    EIDER_TRY_STATUS(add(both.slice_rows(0, rows, fmt::format("{}.{}.gate_proj.weight", prefix, expert))));
    EIDER_TRY_STATUS(add(both.slice_rows(rows, rows, fmt::format("{}.{}.up_proj.weight", prefix, expert))));
  }
  return {};
}

void CheckpointBuilder::add_data(DataTensor tensor) {
  std::string name = tensor.name;
  checkpoint_->data_tensors_.emplace(std::move(name), std::move(tensor));
}

}  // namespace eider
