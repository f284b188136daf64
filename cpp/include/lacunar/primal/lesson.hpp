// What a linear learner learns from: rows in the order given, each with targets.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// (n_rows) or (n_rows, outputs) where not said. S is the type of the scales.
template <class T, class S>
struct Lesson {
  Rows<T> rows;
  const S* scale;  // 1 / sqrt(k(x, x)) for the cosine, or null
  const double* target;
  const double* weight;     // of the rows' losses; null: 1 each
  const double* curvature;  // k(x, x), or null where the steps do not need it
  const double* base;       // (n_rows, outputs): what sums over support rows are added to; or null
  Offset outputs;
  const Offset* order;
  Offset n_order;
};

}  // namespace lacunar
