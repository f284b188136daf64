// What a linear learner learns from: rows in the order given, each with targets.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// (n_rows) or (n_rows, outputs) where not said.
template <class T>
struct TrainingSet {
  Rows<T> rows;
  const double* scale;  // 1 / sqrt(k(x, x)) for the cosine, or null
  const double* target;
  const double* weight;     // of the rows' losses; null: 1 each
  const double* curvature;  // k(x, x), or null where neither the steps nor a budget need it
  const double* base;       // (n_rows, outputs): what sums over support rows are added to; or null
  Offset outputs;
  const Offset* order;
  Offset n_order;
};

}  // namespace lacunar
