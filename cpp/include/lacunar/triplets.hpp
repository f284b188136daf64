// (row, column, value) triplets in any order, as observed entries.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

template <class N, class T>
struct Triplets {
  const N* row;
  const N* col;
  const T* value;  // NaN where missing
  Offset n;
  Offset n_rows, n_cols;
};

struct TripletsSurvey {
  bool sound = true;   // rows and columns lie in the table, and no value is infinite
  bool sorted = true;  // by row and column, each cell at most once and none missing
  Offset known = 0;    // values that are not NaN
};

template <class N, class T>
TripletsSurvey survey_triplets(const Triplets<N, T>& triplets, int n_threads);

// Sorted triplets: offsets (n_rows + 1), indices and values (n). O(n + n_rows).
template <class N, class T>
void copy_triplets(const Triplets<N, T>& triplets, Offset* offsets, Index* indices, T* values, int n_threads);

// Sound triplets by row and column, those of one cell in the order in which they came; indices and values (known).
// Whether a cell came more than once. O(n + n_rows): counting sorts, by blocks of rows first.
template <class N, class T>
bool sort_triplets(const Triplets<N, T>& triplets, Offset known, Offset* offsets, Index* indices, T* values,
                   int n_threads);

// One entry of those of a cell: the last, or their mean, summed in double in their order. offsets are renewed, and the
// number of entries left is returned.
template <class T>
Offset merge_repeated(Offset n_rows, bool mean, Offset* offsets, Index* indices, T* values);

}  // namespace lacunar
