#include "runtime/prepared_model.h"

#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/mapped_file.h"
#include "tensor/buffer.h"
#include "tensor/code_check.h"
#include "weights/fingerprint.h"

namespace eider {
namespace {

/// Of sections: pages of 2 MiB; for small models, whose sections would be half empty then, the largest page
/// that a file is mapped by.
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kLargestPage = std::int64_t{64} << 10;

/// Prepares the weights of a section to `out`, and lets go of the pages they were made from.
Status prepare_section(const Model& model, const std::vector<PreparedWeight>& weights, Backend& backend,
                       const PreparedIndex& index, std::size_t section, std::byte* out) {
  const PreparedSection& place = index.sections()[section];
  const auto last = place.first + place.count;
  for (std::size_t i = place.first; i < last; ++i)
    advise_read_ahead({weights[i].weight->data, static_cast<std::size_t>(weights[i].weight->bytes())});
  for (std::size_t i = place.first; i < last; ++i) {
    const TensorView& weight = *weights[i].weight;
    model.checkpoint->make_ready(weight);
    EIDER_TRY_STATUS(check_codes(weight));
    backend.prepare(weight, out + (index.offset(i) - place.offset));
    model.checkpoint->release(weight);
  }
  return {};
}

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace

std::optional<PreparedIndex> prepared_index(const Model& model, const Backend& backend) {
  const std::vector<PreparedWeight> weights = backend.prepared_weights(model.plan);
  if (weights.empty()) return std::nullopt;
  const auto print = fingerprint(*model.checkpoint);
  if (!print) return std::nullopt;
  std::vector<PreparedTensor> tensors;
  std::int64_t bytes = 0;
  for (const PreparedWeight& weight : weights) {
    tensors.push_back({weight.weight->name, weight.layer, weight.bytes});
    bytes += weight.bytes;
  }
  std::error_code ignored;
  const std::string source = std::filesystem::weakly_canonical(model.checkpoint->path(), ignored).string();
  return PreparedIndex({.fingerprint = *print, .layout = backend.prepared_layout()}, source,
                       std::move(tensors), bytes < PrepareLimits{}.smallest_kept ? kLargestPage : kHugePage);
}

Status prepare_model(const Model& model, Backend& backend, const WeightCache& cache,
                     const PreparedIndex& index, const PreparedProgress& progress) {
  const std::string path = cache.path_of(index.key());
  EIDER_TRY_STATUS(cache.make_room(index));
  EIDER_TRY(std::optional<PreparedFile> file, PreparedFile::open_to_write(path, index));
  while (!file) {
    pause();
    // What the other one has done so far.
    const Result<PreparedFile> seen = PreparedFile::open(path);
    const auto done = seen.ok() ? static_cast<std::int64_t>(seen->finished()) : 0;
    if (!progress(done, static_cast<std::int64_t>(index.sections().size()))) return error("interrupted");
    EIDER_TRY(file, PreparedFile::open_to_write(path, index));
  }
  const std::vector<PreparedWeight> weights = backend.prepared_weights(model.plan);
  for (std::size_t i = 0; i < index.sections().size(); ++i) {
    if (file->state(i) == PreparedFile::State::kFinished) continue;
    const PreparedSection& section = index.sections()[i];
    EIDER_TRY(Buffer buffer, Buffer::allocate(static_cast<std::size_t>(section.bytes)));
    EIDER_TRY_STATUS(prepare_section(model, weights, backend, index, i, buffer.data()));
    bool stopped = false;
    Status written = file->write(i, {buffer.data(), buffer.size()}, [&](std::int64_t done, std::int64_t) {
      stopped = progress && !progress(section.offset + done, index.data_bytes());
      return !stopped;
    });
    if (written.ok()) continue;
    if (!stopped) file->remove();
    return written;
  }
  cache.touch(path);
  return {};
}

Result<MappedPages> resident_pages(const PreparedFile& file) {
  const auto bytes = static_cast<std::size_t>(file.index().data_bytes());
  EIDER_TRY(HugeMapping memory, HugeMapping::create(bytes));
  EIDER_TRY_STATUS(memory.map(0, file.file(), file.index().data_offset(), bytes));
  memory.populate_resident();
  return mapped_pages(memory.bytes());
}

Result<std::shared_ptr<PreparedModel>> PreparedModel::load(const Model& model, Backend& backend,
                                                           const WeightCache& cache,
                                                           const PreparedProgress& progress,
                                                           const PrepareLimits& limits) {
  std::optional<PreparedIndex> index = prepared_index(model, backend);
  if (!index) return std::shared_ptr<PreparedModel>();
  const std::string path = cache.path_of(index->key());
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) && index->data_bytes() < limits.smallest_kept)
    return std::shared_ptr<PreparedModel>();

  EIDER_TRY(HugeMapping memory, HugeMapping::create(static_cast<std::size_t>(index->data_bytes())));
  std::shared_ptr<PreparedModel> prepared(new PreparedModel(*std::move(index), std::move(memory), limits));
  EIDER_TRY_STATUS(prepared->map(path, progress));
  if (!prepared->missing_.empty()) {
    EIDER_TRY_STATUS(prepared->open_to_write(cache));
    EIDER_TRY_STATUS(prepared->prepare(model, backend, progress));
  }
  cache.touch(path);
  prepared->checking_ = prepared->index_.data_bytes() > limits.checked_first;
  prepared->worker_ = std::thread([raw = prepared.get()] { raw->work(); });
  return prepared;
}

std::span<std::byte> PreparedModel::section_bytes(std::size_t section) const {
  const PreparedSection& place = index_.sections()[section];
  return memory_.bytes().subspan(static_cast<std::size_t>(place.offset),
                                 static_cast<std::size_t>(place.bytes));
}

Status PreparedModel::map(const std::string& path, const PreparedProgress& progress) {
  Result<PreparedFile> file = PreparedFile::open(path);
  if (file.ok() && file->index().fits(index_)) file_ = std::move(file).value();
  std::error_code ignored;
  if (!file_ && std::filesystem::exists(path, ignored)) note_ = file.ok() ? "" : file.error().message();

  const bool check_first = index_.data_bytes() <= limits_.checked_first;
  const auto always = [] { return true; };
  for (std::size_t i = 0; i < index_.sections().size(); ++i) {
    const PreparedSection& section = index_.sections()[i];
    bool usable = file_ && file_->state(i) == PreparedFile::State::kFinished;
    if (usable) {
      const auto offset = static_cast<std::size_t>(section.offset);
      const auto bytes = static_cast<std::size_t>(section.bytes);
      EIDER_TRY_STATUS(
          memory_.map(offset, file_->file(), file_->index().data_offset() + section.offset, bytes));
      memory_.populate(offset, bytes);
      usable = !check_first || file_->check(i, section_bytes(i), always) == true;
      if (!usable) EIDER_TRY_STATUS(memory_.unmap(offset, bytes));
    }
    if (file_ && !usable && file_->state(i) != PreparedFile::State::kMissing)
      note_ = fmt::format("{}: {} is damaged", path, section.name());
    (usable ? mapped_ : missing_).push_back(i);
    if (usable) mapped_bytes_ += section.bytes;
    if (progress && !progress(mapped_bytes_, index_.data_bytes())) return error("interrupted");
  }
  return {};
}

Status PreparedModel::open_to_write(const WeightCache& cache) {
  EIDER_TRY_STATUS(cache.make_room(index_));
  EIDER_TRY(writer_, PreparedFile::open_to_write(cache.path_of(index_.key()), index_));
  writing_ = writer_.has_value();
  return {};
}

Status PreparedModel::prepare(const Model& model, Backend& backend, const PreparedProgress& progress) {
  const std::vector<PreparedWeight> weights = backend.prepared_weights(model.plan);
  std::int64_t done = mapped_bytes_;
  for (const std::size_t section : missing_) {
    EIDER_TRY_STATUS(
        prepare_section(model, weights, backend, index_, section, section_bytes(section).data()));
    done += index_.sections()[section].bytes;
    if (progress && !progress(done, index_.data_bytes())) return error("interrupted");
  }
  return {};
}

PreparedModel::~PreparedModel() {
  stop_ = true;
  if (worker_.joinable()) worker_.join();
}

std::vector<const std::byte*> PreparedModel::weights() const {
  std::vector<const std::byte*> weights;
  for (std::size_t i = 0; i < index_.tensors().size(); ++i)
    weights.push_back(memory_.bytes().data() + index_.offset(i));
  return weights;
}

Status PreparedModel::status() const {
  if (!damaged_) return {};
  const std::lock_guard lock(mutex_);
  return check_;
}

void PreparedModel::work() {
  constexpr int kLowPriority = 10;  // decoding goes first
  ::setpriority(PRIO_PROCESS, 0, kLowPriority);
  if (checking_) check_mapped();
  checking_ = false;
  copy_small_pages();
  if (!writing_) return;
  Status written = write_missing();
  if (!written.ok() && !stop_) writer_->remove();
  const std::lock_guard lock(mutex_);
  write_ = std::move(written);
  writing_ = false;
}

void PreparedModel::check_mapped() {
  for (const std::size_t section : mapped_) {
    const std::optional<bool> right = file_->check(section, section_bytes(section), [&] { return !stop_; });
    if (!right) return;
    checked_ += index_.sections()[section].bytes;
    if (*right) continue;
    std::string remedy = "it is prepared anew at the next start";
    Result<PreparedFile> file = PreparedFile::open(file_->path(), File::Mode::kUpdate);
    if (!file.ok() || !file->discard(section).ok()) remedy = "remove that file";
    const std::lock_guard lock(mutex_);
    check_ = error("{}: the prepared weights of {} are damaged, so what was computed is void; {}",
                   file_->path(), index_.sections()[section].name(), remedy);
    damaged_ = true;
    return;
  }
}

// Where the kernel or the file system has no large pages for files, anonymous memory may have them.
void PreparedModel::copy_small_pages() {
  const auto mostly_huge = [](const MappedPages& pages) { return 2 * pages.huge >= pages.resident; };
  if (mapped_.empty() || mostly_huge(mapped_pages(memory_.bytes()))) return;
  for (const std::size_t section : mapped_) {
    const std::span<std::byte> bytes = section_bytes(section);
    // Whole pages of 2 MiB, which small models' sections are not.
    if (bytes.size() % static_cast<std::size_t>(kHugePage) != 0) return;
    Result<HugeMapping> copy = HugeMapping::create(bytes.size());
    if (!copy.ok()) return;
    for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(kHugePage)) {
      if (stop_) return;
      std::memcpy(copy->bytes().data() + at, bytes.data() + at, static_cast<std::size_t>(kHugePage));
    }
    if (!mostly_huge(mapped_pages(copy->bytes()))) return;
    const auto offset = static_cast<std::size_t>(index_.sections()[section].offset);
    if (!memory_.replace(offset, std::move(copy).value()).ok()) return;
  }
}

Status PreparedModel::write_missing() {
  for (const std::size_t section : missing_) {
    const std::int64_t before = written_;
    if (writer_->state(section) != PreparedFile::State::kMissing) EIDER_TRY_STATUS(writer_->discard(section));
    EIDER_TRY_STATUS(writer_->write(section, section_bytes(section), [&](std::int64_t done, std::int64_t) {
      written_ = before + done;
      return !stop_;
    }));
  }
  return {};
}

Status PreparedModel::finish(const PreparedProgress& progress) {
  std::int64_t total = checking_ ? mapped_bytes_ : 0;
  for (const std::size_t section : missing_) total += index_.sections()[section].bytes;
  while (checking_ || writing_) {
    if (progress && !progress(checked_ + written_, total)) return error("interrupted");
    pause();
  }
  const std::lock_guard lock(mutex_);
  return write_;
}

}  // namespace eider
