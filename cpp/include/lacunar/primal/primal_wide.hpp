// Whole tables of gamma 2 that no cache holds, by a block of rows of data: every row of the table is read once a block
// and meets the rows of data that have observed its column, instead of being fetched anew by each of them.
#pragma once

#include "lacunar/primal/primal.hpp"

namespace lacunar {

// values (n_rows, outputs) of a table; a row's bits depend on neither its block nor the number of threads.
template <class T>
void wide_decide(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs, const T* table,
                 double* values, int n_threads);

// A table and what rows add to it, coef (n_rows, outputs); or null and null.
template <class T>
struct Addition {
  T* table;
  const double* coef;
};

// table += sum_i coef_i features(x_i), rows one after the other, for both tables in one pass over the rows.
template <class T>
void wide_add(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs,
              const Addition<T>& one, const Addition<T>& other, int n_threads);

}  // namespace lacunar
