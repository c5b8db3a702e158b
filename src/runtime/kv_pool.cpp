#include "runtime/kv_pool.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "base/check.h"

namespace eider {
namespace {

// A kind's first slab holds this many blocks and each further one doubles the kind's memory, until a slab
// would pass kMaxSlabBytes: a long decode then meets a new slab (the only allocation of a step) ever more
// rarely, while a large pool holds little more than it needs and no single step waits long for zeroed memory.
constexpr std::int64_t kFirstSlabBlocks = 4;
constexpr std::int64_t kMaxSlabBytes = std::int64_t{64} << 20;

constexpr double kMiB = 1024.0 * 1024.0;

}  // namespace

KvPool::KvPool(Backend& backend, std::vector<KvKind> kinds, KvType type, std::int64_t limit_bytes)
    : backend_(backend),
      kinds_(std::move(kinds)),
      type_(type),
      limit_bytes_(limit_bytes > 0 ? limit_bytes : std::numeric_limits<std::int64_t>::max()) {
  for (const KvKind& kind : kinds_) {
    // A kind that no layer uses has blocks as well, so that tables need no special case for it.
    states_.push_back({std::max<std::int64_t>(64, kv_block_bytes(kind, type_)), 0, {}, {}});
  }
}

Result<std::byte*> KvPool::take(int kind) {
  KindState& blocks = state(kind);
  if (blocks.unused.empty()) EIDER_TRY_STATUS(add_slab(blocks));
  std::byte* block = blocks.unused.back();
  blocks.unused.pop_back();
  references(blocks, block) = 1;
  return block;
}

void KvPool::share(int kind, std::byte* block) {
  std::int32_t& count = references(state(kind), block);
  EIDER_CHECK(count > 0);
  ++count;
}

void KvPool::release(int kind, std::byte* block) {
  KindState& blocks = state(kind);
  std::int32_t& count = references(blocks, block);
  EIDER_CHECK(count > 0);
  if (--count == 0) blocks.unused.push_back(block);
}

bool KvPool::is_shared(int kind, const std::byte* block) const {
  return references(state(kind), block) > 1;
}

void KvPool::copy(int kind, const std::byte* from, std::byte* to) {
  std::memcpy(to, from, static_cast<std::size_t>(block_bytes(kind)));
}

std::int64_t KvPool::blocks_in_use(int kind) const {
  return state(kind).blocks - static_cast<std::int64_t>(state(kind).unused.size());
}

std::int64_t KvPool::bytes_in_use() const {
  std::int64_t bytes = 0;
  for (int kind = 0; kind < static_cast<int>(kinds_.size()); ++kind) {
    bytes += blocks_in_use(kind) * block_bytes(kind);
  }
  return bytes;
}

Status KvPool::add_slab(KindState& kind) {
  if (limit_bytes_ - bytes_allocated_ < kind.block_bytes) free_unused_slabs();
  const std::int64_t room = (limit_bytes_ - bytes_allocated_) / kind.block_bytes;
  if (room < 1) {
    return error(
        "the KV cache needs more than its limit of {:.0f} MiB; use a smaller context (-c) or --kv-type f16",
        static_cast<double>(limit_bytes_) / kMiB);
  }
  const std::int64_t most = std::min(room, std::max<std::int64_t>(1, kMaxSlabBytes / kind.block_bytes));
  std::int64_t count = std::min(std::max(kFirstSlabBlocks, kind.blocks), most);
  auto memory = backend_.allocate_kv(count * kind.block_bytes);
  if (!memory.ok() && count > 1) {  // the doubling may be what does not fit
    count = 1;
    memory = backend_.allocate_kv(kind.block_bytes);
  }
  if (!memory.ok()) {
    return error(
        "no memory for the KV cache beyond {:.0f} MiB ({}); use a smaller context (-c) or --kv-type f16",
        static_cast<double>(bytes_allocated_) / kMiB, memory.error().message());
  }

  kind.slabs.push_back({std::move(*memory), std::vector<std::int32_t>(static_cast<std::size_t>(count), 0)});
  kind.blocks += count;
  bytes_allocated_ += count * kind.block_bytes;
  kind.unused.reserve(static_cast<std::size_t>(kind.blocks));
  std::byte* const first = kind.slabs.back().memory.data;
  for (std::int64_t block = count - 1; block >= 0; --block) {  // lowest address on top
    kind.unused.push_back(first + block * kind.block_bytes);
  }
  return {};
}

void KvPool::free_unused_slabs() {
  for (KindState& kind : states_) {
    const auto is_unused = [](const Slab& slab) {
      return std::all_of(slab.references.begin(), slab.references.end(),
                         [](std::int32_t count) { return count == 0; });
    };
    for (const Slab& slab : kind.slabs) {
      if (!is_unused(slab)) continue;
      const auto count = static_cast<std::int64_t>(slab.references.size());
      std::erase_if(kind.unused,
                    [&](const std::byte* block) { return slab_has(slab, kind.block_bytes, block); });
      kind.blocks -= count;
      bytes_allocated_ -= count * kind.block_bytes;
    }
    std::erase_if(kind.slabs, is_unused);
  }
}

bool KvPool::slab_has(const Slab& slab, std::int64_t block_bytes, const std::byte* block) {
  const std::byte* const first = slab.memory.data;
  const auto bytes = static_cast<std::int64_t>(slab.references.size()) * block_bytes;
  return !std::less<>()(block, first) && std::less<>()(block, first + bytes);
}

const std::int32_t& KvPool::references(const KindState& kind, const std::byte* block) {
  for (const Slab& slab : kind.slabs) {
    if (!slab_has(slab, kind.block_bytes, block)) continue;
    const std::int64_t offset = block - slab.memory.data;
    EIDER_CHECK_EQ(offset % kind.block_bytes, 0);
    return slab.references[static_cast<std::size_t>(offset / kind.block_bytes)];
  }
  check_failed(__FILE__, __LINE__, "a block that is not of this pool");
}

}  // namespace eider
