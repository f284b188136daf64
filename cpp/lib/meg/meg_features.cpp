#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/meg/meg_forms.hpp"

namespace lacunar {

MegFeatureForm::MegFeatureForm(MegSource rows, Offset d_rows, MegSource cols, Offset d_cols)
    : rows_(std::move(rows)),
      cols_(std::move(cols)),
      d_rows_(d_rows),
      d_cols_(d_cols),
      length_(padded(d_rows + d_cols)),
      scale_(std::sqrt(0.5)),
      matrix_(4 * length_ * (length_ / 8 + 1), 0.0),
      x_(length_, 0.0) {}

Offset MegFeatureForm::open(Index i, Index j) {
  for (Index k = 0; k < d_rows_; ++k) x_[k] = scale_ * rows_.at(i, k);
  for (Index k = 0; k < d_cols_; ++k) x_[d_rows_ + k] = scale_ * cols_.at(j, k);
  return length_;
}

double MegFeatureForm::norm2() const { return kernels().meg.dot(x_.data(), x_.data(), length_); }

double MegFeatureForm::start(double* q, double* p) {
  const double square = norm2();
  if (square == 0) return 0;
  const double scale = 1 / std::sqrt(square);
  for (Offset k = 0; k < length_; ++k) p[k] = q[k] = scale * x_[k];
  return square;
}

void MegFeatureForm::by_a(const double* p, double* u) {
  kernels().small.symmetric(matrix_.data(), static_cast<int>(length_), p, u);
}

void MegFeatureForm::by_k(const double* u, double* w) { std::copy_n(u, length_, w); }

bool MegFeatureForm::add(double change) {
  for (Offset k = 0; k < length_; ++k) {
    const double after = matrix_[4 * (k / 8) * (k / 8 + 1) * 8 + k % 8 * (k / 8 * 8 + 8) + k] + change * x_[k] * x_[k];
    if (!std::isfinite(after)) return false;
  }
  kernels().meg.grow_symmetric(matrix_.data(), length_, change, x_.data());
  return true;
}

bool MegFeatureForm::grow(MegSource rows, MegSource cols) {
  if (rows.vertices < rows_.vertices || cols.vertices < cols_.vertices) return false;
  if (rows.leading != d_rows_ || cols.leading != d_cols_) return false;
  rows_ = std::move(rows);
  cols_ = std::move(cols);
  return true;
}

}  // namespace lacunar
