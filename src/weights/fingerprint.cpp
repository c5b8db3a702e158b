#include "weights/fingerprint.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <span>

namespace eider {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSamples = 32;  // of a file; each may be a seek of the disk
/// The header of a file with a vocabulary of 262,144 tokens has 12 MiB.
constexpr std::size_t kMostHeader = std::size_t{64} << 20;

class Digest {
 public:
  Digest() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  void add(std::int64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  std::array<std::uint64_t, 2> value() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.high64, hash.low64};
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

/// Bytes before the first tensor that lies in the file.
std::size_t header_bytes(const Checkpoint& checkpoint, std::span<const std::byte> file) {
  std::size_t header = std::min(file.size(), kMostHeader);
  for (const auto& [name, tensor] : checkpoint.tensors())
    if (std::greater_equal<>()(tensor.data, file.data()) && std::less<>()(tensor.data, file.data() + header))
      header = static_cast<std::size_t>(tensor.data - file.data());
  return header;
}

}  // namespace

std::optional<std::array<std::uint64_t, 2>> fingerprint(const Checkpoint& checkpoint) {
  if (checkpoint.files().empty()) return std::nullopt;
  Digest digest;
  for (const auto& file : checkpoint.files()) {
    const std::span<const std::byte> bytes = file->bytes();
    digest.add(static_cast<std::int64_t>(bytes.size()));
    digest.add(file->modified());
    const std::size_t header = header_bytes(checkpoint, bytes);
    digest.add(bytes.first(header));
    const std::span<const std::byte> tensors = bytes.subspan(header);
    const std::size_t pages = (tensors.size() + kPage - 1) / kPage;
    for (std::size_t i = 0; i < std::min(pages, kSamples); ++i) {
      // The last page is among them: it is where a file that is still being copied differs.
      const std::size_t page = pages <= kSamples ? i : i * (pages - 1) / (kSamples - 1);
      digest.add(tensors.subspan(page * kPage, std::min(kPage, tensors.size() - page * kPage)));
    }
  }
  return digest.value();
}

}  // namespace eider
