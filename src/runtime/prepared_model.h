// PreparedModel: a model's weights in the backend's own form, from the weight cache as far as they are there.
// The rest is made in memory, and written to the cache behind the run's back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/huge_mapping.h"
#include "base/result.h"
#include "model/model.h"
#include "ops/backend.h"
#include "weights/prepared_file.h"
#include "weights/weight_cache.h"

namespace eider {

/// What the prepared file of a model would hold; nothing where the backend has no form of its own or the
/// checkpoint no file.
std::optional<PreparedIndex> prepared_index(const Model& model, const Backend& backend);

/// Writes what the cache lacks of a model, one section in memory at a time. Waits, with progress(), while
/// another process writes the same file. Fails as PreparedFile and WeightCache do, and when progress() says
/// to stop; finished sections are kept.
Status prepare_model(const Model& model, Backend& backend, const WeightCache& cache,
                     const PreparedIndex& index, const PreparedProgress& progress);

/// How the kernel maps as much of the file as is in memory already.
Result<MappedPages> resident_pages(const PreparedFile& file);

/// In bytes of a model's prepared weights.
struct PrepareLimits {
  /// Smaller models are not added to the cache on their own: they are prepared in a few tens of milliseconds.
  std::int64_t smallest_kept = std::int64_t{64} << 20;
  /// Larger models are checked in the background, others before their first use.
  std::int64_t checked_first = std::int64_t{256} << 20;
};

class PreparedModel {
 public:
  /// Maps what the cache has, prepares the rest, and begins to write that (unless another process does).
  /// Nothing where there is nothing to gain. Fails where the cache cannot be used, and when progress() says
  /// to stop.
  static Result<std::shared_ptr<PreparedModel>> load(const Model& model, Backend& backend,
                                                     const WeightCache& cache,
                                                     const PreparedProgress& progress,
                                                     const PrepareLimits& limits = {});
  ~PreparedModel();
  PreparedModel(const PreparedModel&) = delete;
  PreparedModel& operator=(const PreparedModel&) = delete;

  /// For CompileOptions::prepared.
  std::vector<const std::byte*> weights() const;
  /// An error once the check in the background has found bytes that are not what was written: whatever was
  /// computed from them is void.
  Status status() const;
  /// What was wrong with the cache's file and is being mended; empty: nothing.
  const std::string& note() const { return note_; }

  /// Whether what was missing is being written.
  bool is_writing() const { return writing_; }
  /// Waits until all is checked and written; what the check found is in status(). Fails where something
  /// cannot be written, or progress() said to stop.
  Status finish(const PreparedProgress& progress);

  /// How much came from the file.
  std::int64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  PreparedModel(PreparedIndex index, HugeMapping memory, const PrepareLimits& limits)
      : index_(std::move(index)), memory_(std::move(memory)), limits_(limits) {}
  Status map(const std::string& path, const PreparedProgress& progress);
  Status prepare(const Model& model, Backend& backend, const PreparedProgress& progress);
  Status open_to_write(const WeightCache& cache);
  void work();
  void check_mapped();
  void copy_small_pages();
  Status write_missing();
  std::span<std::byte> section_bytes(std::size_t section) const;

  PreparedIndex index_;
  HugeMapping memory_;  // laid out as the file's data
  PrepareLimits limits_;
  std::optional<PreparedFile> file_;           // what is mapped
  std::optional<PreparedFile> writer_;         // the same or a new one; nothing: another process writes it
  std::vector<std::size_t> mapped_, missing_;  // sections
  std::int64_t mapped_bytes_ = 0;
  std::string note_;

  std::thread worker_;
  std::atomic<bool> stop_ = false, checking_ = false, writing_ = false, damaged_ = false;
  std::atomic<std::int64_t> checked_ = 0, written_ = 0;  // bytes
  mutable std::mutex mutex_;                             // of what follows
  Status check_, write_;
};

}  // namespace eider
