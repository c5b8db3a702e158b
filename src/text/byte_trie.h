// ByteTrie: the spellings of a vocabulary as a tree over their bytes, for finding all that begin at a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace eider {

class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;

  ByteTrie() : edges_(kFirstEdges, Edge{}) {}

  /// The node at the end of `spelling`, made where it is not there. Nodes are numbered from 0 without gaps.
  Node add(std::string_view spelling);
  /// The node that `byte` leads to.
  std::optional<Node> next(Node node, char byte) const {
    const std::uint64_t wanted = key(node, byte);
    for (std::size_t place = first_place(wanted);; place = (place + 1) & (edges_.size() - 1)) {
      if (edges_[place].key == wanted) return edges_[place].child;
      if (edges_[place].key == kNoEdge) return std::nullopt;
    }
  }
  std::size_t node_count() const { return node_count_; }

 private:
  // Open addressing with linear probing, half full at most.
  static constexpr std::uint64_t kNoEdge = ~std::uint64_t{0};
  static constexpr std::size_t kFirstEdges = 64;
  struct Edge {
    std::uint64_t key = kNoEdge;
    Node child = 0;
  };

  static std::uint64_t key(Node node, char byte) {
    return (std::uint64_t{node} << 8) | static_cast<std::uint8_t>(byte);
  }
  std::size_t first_place(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(key ^ (key >> 32)) & (edges_.size() - 1);
  }
  Edge& find_or_free(std::uint64_t key);
  void grow();

  std::vector<Edge> edges_;  // as many as a power of two
  std::size_t node_count_ = 1;
};

}  // namespace eider
