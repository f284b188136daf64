// Sums over fitted decision trees: every row is led from the root to a leaf of every tree, whose values are added up.
#pragma once

#include <cstdint>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

// Trees one after another. A node with feature -1 is a leaf, and left is the number of its row of values.
struct Forest {
  const Index* roots;    // (n_trees) first node of a tree
  const Index* outputs;  // (n_trees) first column of the sums to which its values are added
  Offset n_trees;
  Offset n_nodes;
  const Index* feature;               // (n_nodes)
  const double* threshold;            // (n_nodes) a number goes left where it is at most this
  const Index* left;                  // (n_nodes)
  const Index* right;                 // (n_nodes)
  const unsigned char* missing_left;  // (n_nodes) where a missing entry goes
  const Index* category_set;          // (n_nodes) which set of categories goes left; -1 where a threshold decides
  const std::uint32_t* sets;          // (n_sets, 8) bits of categories 0 to 255
  const float* values;                // (n_leaves, width)
  Offset width;
};

// What one step down reads, side by side in memory. A leaf leads to itself.
struct ForestNode {
  double threshold;
  Index feature;
  Index set;
  Index next[2];  // right, left
  Index leaf;     // row of values
  unsigned missing_left;
};

// Trees whose nodes are packed once, for any number of calls. Roots, outputs, sets and values must outlive it.
class PackedForest {
 public:
  explicit PackedForest(const Forest& forest);

  // out (n, n_outputs) += the trees' values at rows (n, n_cols), NaN where an entry is missing. A row's sum runs over
  // trees in order, so that its bits do not depend on threads. O(n, trees, depth).
  void add(const double* rows, Offset n, Offset n_cols, double* out, Offset n_outputs, int n_threads) const;

 private:
  template <Offset kRows>
  void add_tree(Offset tree, const double* rows, Offset n_cols, double* out, Offset n_outputs) const;

  std::vector<ForestNode> nodes_;
  const Index *roots_, *outputs_;
  Offset n_trees_;
  const std::uint32_t* sets_;
  const float* values_;
  Offset width_;
};

}  // namespace lacunar
