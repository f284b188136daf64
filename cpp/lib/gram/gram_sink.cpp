// What every path does with a finished block of sums and counts.
#include "lacunar/gram/karma_gram.hpp"

namespace lacunar {

template <class T>
GramSink<T>::GramSink(const GramTask<T>& task, Offset max_rows, Offset max_cols)
    : task_(task), max_cols_(max_cols), block_(static_cast<std::size_t>(max_rows * max_cols)) {
  if (task.symmetric) mirrored_.resize(block_.size());
}

template <class T>
void GramSink<T>::put(const T* s, const std::int32_t* n, Offset leading, Offset i, Offset rows, Offset j, Offset cols) {
  const auto& gram = kernels_of<T>().gram;
  const Offset n_x = task_.x.n_rows, n_y = task_.y.n_rows;
  for (std::size_t q = 0; q < task_.forms.size(); ++q) {
    const auto form = static_cast<Offset>(q);
    const T* row_scale = task_.row_scale ? task_.row_scale + form * n_x + i : nullptr;
    const T* col_scale = task_.col_scale ? task_.col_scale + form * n_y + j : nullptr;
    T* out = task_.out + form * n_x * n_y;
    for (Offset r = 0; r < rows; ++r) {
      T* line = block_.data() + r * max_cols_;
      gram.finish(s + r * leading, n + r * leading, cols, task_.forms[q], row_scale ? row_scale[r] : T{1}, col_scale,
                  line);
      gram.stream(line, out + (i + r) * n_y + j, cols);
    }
    if (task_.symmetric) mirror(out, i, rows, j, cols);
  }
}

// Writes the part of block_ that lies strictly right of the diagonal, and of its own block, to the other side.
template <class T>
void GramSink<T>::mirror(T* out, Offset i, Offset rows, Offset j, Offset cols) {
  if (j < i + rows) return;  // a block on the diagonal was computed whole
  kernels_of<T>().gram.transpose(block_.data(), rows, cols, max_cols_, mirrored_.data());
  for (Offset c = 0; c < cols; ++c)
    kernels_of<T>().gram.stream(mirrored_.data() + c * rows, out + (j + c) * task_.y.n_rows + i, rows);
}

template class GramSink<float>;
template class GramSink<double>;

}  // namespace lacunar
