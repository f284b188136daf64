#include "lacunar/sums/forest.hpp"

#include <algorithm>

#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kRowsATask = 256;  // which a tree leads to their leaves while its nodes are in cache
constexpr Offset kRowsAtOnce = 8;   // side by side: the next step of one row need not wait for that of another
constexpr double kCategories = 256;

bool in_set(const std::uint32_t* set, double x, bool otherwise) {
  if (!(x >= 0 && x < kCategories)) return otherwise;
  const auto category = static_cast<unsigned>(x);
  return (set[category / 32] >> (category % 32)) & 1U;
}

}  // namespace

PackedForest::PackedForest(const Forest& forest)
    : nodes_(static_cast<std::size_t>(forest.n_nodes)),
      roots_(forest.roots),
      outputs_(forest.outputs),
      n_trees_(forest.n_trees),
      sets_(forest.sets),
      values_(forest.values),
      width_(forest.width) {
  for (Index k = 0; k < static_cast<Index>(nodes_.size()); ++k) {
    const bool leaf = forest.feature[k] < 0;
    nodes_[static_cast<std::size_t>(k)] = {
        forest.threshold[k],        forest.feature[k],
        forest.category_set[k],     {leaf ? k : forest.right[k], leaf ? k : forest.left[k]},
        leaf ? forest.left[k] : -1, forest.missing_left[k] != 0};
  }
}

// Leads kRows rows from the root of a tree to its leaves. Which child is next is no branch: it could not be foretold.
template <Offset kRows>
void PackedForest::add_tree(Offset tree, const double* rows, Offset n_cols, double* out, Offset n_outputs) const {
  const ForestNode* nodes = nodes_.data();
  Index at[kRows];
  std::fill(at, at + kRows, roots_[tree]);
  for (Index inner = nodes[roots_[tree]].feature; inner >= 0;) {
    inner = -1;
    for (Offset i = 0; i < kRows; ++i) {
      const ForestNode& node = nodes[at[i]];
      const double x = rows[i * n_cols + std::max(node.feature, Index{0})];
      unsigned left = static_cast<unsigned>(x <= node.threshold) | (node.missing_left & static_cast<unsigned>(x != x));
      if (node.set >= 0) left = in_set(sets_ + Offset{node.set} * 8, x, node.missing_left != 0);
      at[i] = node.next[left];
      inner &= node.feature;  // negative where all rows have reached leaves
    }
  }
  for (Offset i = 0; i < kRows; ++i) {
    const float* values = values_ + Offset{nodes[at[i]].leaf} * width_;
    double* sums = out + i * n_outputs + outputs_[tree];
    for (Offset k = 0; k < width_; ++k) sums[k] += static_cast<double>(values[k]);
  }
}

void PackedForest::add(const double* rows, Offset n, Offset n_cols, double* out, Offset n_outputs,
                       int n_threads) const {
  parallel_tasks(n_threads, (n + kRowsATask - 1) / kRowsATask, [&](Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kRowsATask, n);
    for (Offset tree = 0; tree < n_trees_; ++tree) {
      if (tree % 64 == 0) check.look();
      Offset i = task * kRowsATask;
      for (; i + kRowsAtOnce <= last; i += kRowsAtOnce)
        add_tree<kRowsAtOnce>(tree, rows + i * n_cols, n_cols, out + i * n_outputs, n_outputs);
      for (; i < last; ++i) add_tree<1>(tree, rows + i * n_cols, n_cols, out + i * n_outputs, n_outputs);
    }
  });
}

}  // namespace lacunar
