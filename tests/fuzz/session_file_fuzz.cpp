// Session files: any bytes, also such whose checksums are right.
#include <xxhash.h>

#include <cstring>
#include <string>
#include <vector>

#include "backend/reference/reference_backend.h"
#include "base/machine.h"
#include "serving/session_file.h"
#include "tests/support/memory_file.h"

namespace {

// As written: the header's length, and where the checksum of the index and its own stand.
constexpr std::size_t kHeaderBytes = 104, kIndexChecksum = 88, kHeaderChecksum = 96, kCounts = 56;

// Puts right checksums into what has room for them, so that what lies behind them is reached.
void mend(std::string& bytes) {
  if (bytes.size() < kHeaderBytes) return;
  std::uint64_t counts[3];
  std::memcpy(counts, bytes.data() + kCounts, sizeof counts);
  const std::uint64_t index = 4 * (counts[0] % 10000) + 8 * (counts[1] % 10000) + 16 * (counts[2] % 10000);
  const std::uint64_t end = (kHeaderBytes + index + 4095) / 4096 * 4096;
  if (end <= bytes.size()) {
    const std::uint64_t checksum = XXH3_64bits(bytes.data() + kHeaderBytes, end - kHeaderBytes);
    std::memcpy(bytes.data() + kIndexChecksum, &checksum, sizeof checksum);
  }
  const std::uint64_t checksum = XXH3_64bits(bytes.data(), kHeaderChecksum);
  std::memcpy(bytes.data() + kHeaderChecksum, &checksum, sizeof checksum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eider;
  static ThreadPool threads(1);
  static const std::unique_ptr<Backend> backend = make_reference_backend(threads, detect_machine());
  static const KvPool pool(*backend, {{"full", 1, 1, 2, 0}, {"sliding", 1, 1, 2, 100}}, KvType::kF16, 0);
  static const serving::SessionFormat format({1, 2}, pool, 4096, 64);
  static const test::MemoryFile memory;

  std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const bool mended : {false, true}) {
    if (mended) mend(bytes);
    memory.assign(bytes);
    const auto file = File::open(memory.path(), File::Mode::kRead);
    if (!file.ok()) return 0;
    const auto index = format.read_index(*file);
    if (!index.ok()) continue;
    for (std::size_t i = 0; i < index->blocks.size(); ++i) {
      std::vector<std::byte> content(
          static_cast<std::size_t>(format.block_bytes(index->blocks[i].place.kind)));
      (void)format.read_block(*file, *index, i, content).ok();
    }
  }
  return 0;
}
