// Gram matrices of the KARMA kernel (Hazan, Livni, Mansour 2015, Theorem 4): several of them from one pass over pairs.
#pragma once

#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

enum class GramPath { automatic, dense, spmm, inverted };

// Scales are null or (n_forms, x.n_rows) and (n_forms, y.n_rows), multiplied into the output.
template <class T>
struct GramTask {
  Rows<T> x, y;
  bool symmetric;  // y is x, and so are the scales: half of the pairs are computed and mirrored
  std::vector<Form<T>> forms;
  const T* row_scale;
  const T* col_scale;
  T* out;  // (n_forms, x.n_rows, y.n_rows)
};

// The path expected to be fastest, from sizes, density and overlap. O(n_observed + d).
template <class T>
GramPath choose_gram_path(const Rows<T>& x, const Rows<T>& y);

// Every output element is computed whole by one thread in a fixed order: the result does not depend on n_threads.
template <class T>
void karma_gram(const GramTask<T>& task, GramPath path, int n_threads);

// One block of sums s and counts n, rows [i, i + rows) x columns [j, j + cols), handed to the outputs of a task.
template <class T>
class GramSink {
 public:
  GramSink(const GramTask<T>& task, Offset max_rows, Offset max_cols);
  void put(const T* s, const std::int32_t* n, Offset leading, Offset i, Offset rows, Offset j, Offset cols);

 private:
  void mirror(T* out, Offset i, Offset rows, Offset j, Offset cols);

  const GramTask<T>& task_;
  Offset max_cols_;
  std::vector<T> block_, mirrored_;
};

template <class T>
void gram_dense(const GramTask<T>& task, int n_threads);
template <class T>
void gram_spmm(const GramTask<T>& task, int n_threads);
template <class T>
void gram_inverted(const GramTask<T>& task, int n_threads);

}  // namespace lacunar
