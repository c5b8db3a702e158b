#include "text/byte_trie.h"

#include <utility>

namespace eider {

ByteTrie::Node ByteTrie::add(std::string_view spelling) {
  Node node = kRoot;
  for (const char byte : spelling) {
    if (2 * node_count_ > edges_.size()) grow();
    Edge& edge = find_or_free(key(node, byte));
    if (edge.key == kNoEdge) edge = {key(node, byte), static_cast<Node>(node_count_++)};
    node = edge.child;
  }
  return node;
}

ByteTrie::Edge& ByteTrie::find_or_free(std::uint64_t key) {
  std::size_t place = first_place(key);
  while (edges_[place].key != key && edges_[place].key != kNoEdge) place = (place + 1) & (edges_.size() - 1);
  return edges_[place];
}

void ByteTrie::grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(2 * edges_.size()));
  for (const Edge& edge : old) {
    if (edge.key != kNoEdge) find_or_free(edge.key) = edge;
  }
}

}  // namespace eider
