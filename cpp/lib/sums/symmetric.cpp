#include "lacunar/sums/symmetric.hpp"

#include <algorithm>
#include <vector>

namespace lacunar {
namespace {

struct Split {
  double score = -1.0;
  Index column = 0;
  Index code = 0;
};

double score_of(double gradient, double hessian, double penalty) { return gradient * gradient / (hessian + penalty); }

// Sums (n_nodes, n_codes, width) of the pairs (n, width) of the rows of every node and code.
void sum_pairs(const unsigned char* codes, const Index* leaf, const double* pairs, Offset n, Offset width,
               Offset n_codes, double* sums) {
  for (Offset i = 0; i < n; ++i) {
    double* to = sums + (leaf[i] * n_codes + codes[i]) * width;
    for (Offset k = 0; k < width; ++k) to[k] += pairs[i * width + k];
  }
}

// Adds what a node says of every split: its sums are (n_codes, width).
void add_scores(const double* sums, Offset n_codes, Offset width, bool categorical, double penalty,
                std::vector<double>& scores) {
  for (Offset k = 0; k < width; k += 2) {
    double all_gradient = 0.0, all_hessian = 0.0, gradient = 0.0, hessian = 0.0;
    for (Offset code = 0; code < n_codes; ++code) {
      all_gradient += sums[code * width + k];
      all_hessian += sums[code * width + k + 1];
    }
    for (Offset code = 0; code < n_codes; ++code) {
      gradient = sums[code * width + k] + (categorical ? 0.0 : gradient);
      hessian = sums[code * width + k + 1] + (categorical ? 0.0 : hessian);
      scores[static_cast<std::size_t>(code)] +=
          score_of(gradient, hessian, penalty) + score_of(all_gradient - gradient, all_hessian - hessian, penalty);
    }
  }
}

Split best_split(const CodedRows& rows, const double* pairs, Offset width, double penalty, Offset n_nodes,
                 const Index* leaf, std::vector<double>& sums) {
  Split best;
  std::vector<double> scores;
  for (Offset j = 0; j < rows.n_cols; ++j) {
    const Offset n_codes = rows.n_codes[j];
    sums.assign(static_cast<std::size_t>(n_nodes * n_codes * width), 0.0);
    scores.assign(static_cast<std::size_t>(n_codes), 0.0);
    sum_pairs(rows.codes + j * rows.n, leaf, pairs, rows.n, width, n_codes, sums.data());
    for (Offset node = 0; node < n_nodes; ++node)
      add_scores(sums.data() + node * n_codes * width, n_codes, width, rows.categorical[j] != 0, penalty, scores);
    const auto top = std::max_element(scores.begin(), scores.end());
    if (top != scores.end() && *top > best.score)
      best = {*top, static_cast<Index>(j), static_cast<Index>(top - scores.begin())};
  }
  return best;
}

}  // namespace

void grow_symmetric_tree(const CodedRows& rows, const double* pairs, Offset n_outputs, double penalty, Offset depth,
                         Index* columns, Index* codes, Index* leaf) {
  std::vector<double> sums;
  std::fill(leaf, leaf + rows.n, 0);
  for (Offset level = 0; level < depth; ++level) {
    const Split split = best_split(rows, pairs, 2 * n_outputs, penalty, Offset{1} << level, leaf, sums);
    columns[level] = split.column;
    codes[level] = split.code;
    const unsigned char* of_column = rows.codes + split.column * rows.n;
    const bool categorical = rows.categorical[split.column] != 0;
    for (Offset i = 0; i < rows.n; ++i) {
      const bool left = categorical ? of_column[i] == split.code : of_column[i] <= split.code;
      leaf[i] = 2 * leaf[i] + (left ? 0 : 1);
    }
  }
}

}  // namespace lacunar
