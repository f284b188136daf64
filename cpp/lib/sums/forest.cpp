#include "lacunar/sums/forest.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kRowsATask = 256;  // which a tree leads to their leaves while its nodes are in cache
constexpr double kCategories = 256;

bool goes_left(const Forest& forest, Index node, double x) {
  if (std::isnan(x)) return forest.missing_left[node] != 0;
  const Index set = forest.category_set[node];
  if (set < 0) return x <= forest.threshold[node];
  if (!(x >= 0 && x < kCategories)) return forest.missing_left[node] != 0;
  const auto category = static_cast<unsigned>(x);
  return (forest.sets[static_cast<Offset>(set) * 8 + category / 32] >> (category % 32)) & 1U;
}

Index leaf_of(const Forest& forest, Index node, const double* row) {
  while (forest.feature[node] >= 0)
    node = goes_left(forest, node, row[forest.feature[node]]) ? forest.left[node] : forest.right[node];
  return node;
}

}  // namespace

void add_forest(const Forest& forest, const double* rows, Offset n, Offset n_cols, double* out, Offset n_outputs,
                int n_threads) {
  parallel_tasks(n_threads, (n + kRowsATask - 1) / kRowsATask, [&](Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kRowsATask, n);
    for (Offset tree = 0; tree < forest.n_trees; ++tree) {
      if (tree % 64 == 0) check.look();
      for (Offset i = task * kRowsATask; i < last; ++i) {
        const Index leaf = leaf_of(forest, forest.roots[tree], rows + i * n_cols);
        const float* values = forest.values + forest.left[leaf] * forest.width;
        double* sums = out + i * n_outputs + forest.outputs[tree];
        for (Offset k = 0; k < forest.width; ++k) sums[k] += static_cast<double>(values[k]);
      }
    }
  });
}

}  // namespace lacunar
