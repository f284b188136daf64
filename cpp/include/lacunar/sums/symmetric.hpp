// One symmetric tree of gradient boosting: all nodes of a level share one split.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// Rows whose numbers and categories are codes: 0 where missing, then bins in ascending order, or levels.
struct CodedRows {
  const unsigned char* codes;        // (n_cols, n)
  const Index* n_codes;              // (n_cols) codes lie below it
  const unsigned char* categorical;  // (n_cols)
  Offset n;
  Offset n_cols;
};

// The splits of a tree, root first: rows go left whose code in `columns` is at most that in `codes`, or of a category
// that very code; and the leaf (n) of every row, left child first. A split is the one of the largest sum over nodes and
// outputs of G^2 / (H + penalty), the first of equals; `pairs` (n, n_outputs, 2) are gradients and hessians. They lie
// on a grid on which sums are exact, or equal splits would be told apart by their last bit. O(depth n n_cols
// n_outputs).
void grow_symmetric_tree(const CodedRows& rows, const double* pairs, Offset n_outputs, double penalty, Offset depth,
                         Index* columns, Index* codes, Index* leaf);

}  // namespace lacunar
