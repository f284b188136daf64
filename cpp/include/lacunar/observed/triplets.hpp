// (row, column, value) triplets in any order, as observed entries.
#pragma once

#include <optional>

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
  bool sound = true;  // rows and columns lie in the table, and no value is infinite
  Offset known = 0;   // values that are not NaN
};

// Triplets are the caller's memory, which another thread may write to at any time. So nothing is written by what an
// earlier reading of them said: what is copied is checked in its copy, and every place is bounded.

// Sorted triplets: offsets (n_rows + 1), indices and values (n). False where a triplet is missing, unsound or not after
// the one before by row and column; the output is worth nothing then. O(n + n_rows).
template <class N, class T>
bool copy_triplets(const Triplets<N, T>& triplets, Offset* offsets, Index* indices, T* values, int n_threads);

template <class N, class T>
TripletsSurvey survey_triplets(const Triplets<N, T>& triplets, int n_threads);

// Sound triplets by row and column, those of one cell in the order in which they came; indices and values (known).
// Whether a cell came more than once; nothing where triplets are no longer those of the survey. O(n + n_rows): counting
// sorts, by blocks of rows first.
template <class N, class T>
std::optional<bool> sort_triplets(const Triplets<N, T>& triplets, Offset known, Offset* offsets, Index* indices,
                                  T* values, int n_threads);

// One entry of those of a cell: the last, or their mean, summed in double in their order. offsets are renewed, and the
// number of entries left is returned.
template <class T>
Offset merge_repeated(Offset n_rows, bool mean, Offset* offsets, Index* indices, T* values);

}  // namespace lacunar
