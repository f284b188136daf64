#include "lacunar/sums/forest.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kRowsATask = 256;  // which a tree leads to their leaves while its nodes are in cache
constexpr Offset kRowsAtOnce = 8;   // side by side: the next step of one row need not wait for that of another
constexpr double kCategories = 256;

// What one step down reads, side by side in memory. A leaf leads to itself.
struct Node {
  double threshold;
  Index feature;
  Index set;
  Index next[2];  // right, left
  unsigned missing_left;
};

std::vector<Node> nodes_of(const Forest& forest) {
  std::vector<Node> nodes(static_cast<std::size_t>(forest.n_nodes));
  for (Index k = 0; k < static_cast<Index>(nodes.size()); ++k) {
    const bool leaf = forest.feature[k] < 0;
    nodes[static_cast<std::size_t>(k)] = {forest.threshold[k],
                                          forest.feature[k],
                                          forest.category_set[k],
                                          {leaf ? k : forest.right[k], leaf ? k : forest.left[k]},
                                          forest.missing_left[k] != 0};
  }
  return nodes;
}

bool in_set(const std::uint32_t* set, double x, bool otherwise) {
  if (!(x >= 0 && x < kCategories)) return otherwise;
  const auto category = static_cast<unsigned>(x);
  return (set[category / 32] >> (category % 32)) & 1U;
}

// Leads kRows rows from the root of a tree to its leaves. Which child is next is no branch: it could not be foretold.
template <Offset kRows>
void add_tree(const Forest& forest, const Node* nodes, Offset tree, const double* rows, Offset n_cols, double* out,
              Offset n_outputs) {
  Index at[kRows];
  std::fill(at, at + kRows, forest.roots[tree]);
  for (Index inner = nodes[forest.roots[tree]].feature; inner >= 0;) {
    inner = -1;
    for (Offset i = 0; i < kRows; ++i) {
      const Node& node = nodes[at[i]];
      const double x = rows[i * n_cols + std::max(node.feature, Index{0})];
      unsigned left = static_cast<unsigned>(x <= node.threshold) | (node.missing_left & static_cast<unsigned>(x != x));
      if (node.set >= 0) left = in_set(forest.sets + Offset{node.set} * 8, x, node.missing_left != 0);
      at[i] = node.next[left];
      inner &= node.feature;  // negative where all rows have reached leaves
    }
  }
  for (Offset i = 0; i < kRows; ++i) {
    const float* values = forest.values + forest.left[at[i]] * forest.width;
    double* sums = out + i * n_outputs + forest.outputs[tree];
    for (Offset k = 0; k < forest.width; ++k) sums[k] += static_cast<double>(values[k]);
  }
}

}  // namespace

void add_forest(const Forest& forest, const double* rows, Offset n, Offset n_cols, double* out, Offset n_outputs,
                int n_threads) {
  const std::vector<Node> nodes = nodes_of(forest);
  parallel_tasks(n_threads, (n + kRowsATask - 1) / kRowsATask, [&](Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kRowsATask, n);
    for (Offset tree = 0; tree < forest.n_trees; ++tree) {
      if (tree % 64 == 0) check.look();
      Offset i = task * kRowsATask;
      for (; i + kRowsAtOnce <= last; i += kRowsAtOnce)
        add_tree<kRowsAtOnce>(forest, nodes.data(), tree, rows + i * n_cols, n_cols, out + i * n_outputs, n_outputs);
      for (; i < last; ++i)
        add_tree<1>(forest, nodes.data(), tree, rows + i * n_cols, n_cols, out + i * n_outputs, n_outputs);
    }
  });
}

}  // namespace lacunar
