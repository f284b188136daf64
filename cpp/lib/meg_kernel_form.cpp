#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/meg_forms.hpp"

namespace lacunar {

MegKernelForm::MegKernelForm(std::shared_ptr<MegSide> rows, std::shared_ptr<MegSide> cols)
    : rows_(std::move(rows)), cols_(std::move(cols)) {
  fit_sums();
}

void MegKernelForm::fit_sums() {
  // Sums are never cut: beyond the seats they are zeros.
  if (static_cast<Offset>(row_sums_.size()) < rows_->stride()) row_sums_.resize(rows_->stride(), 0.0);
  if (static_cast<Offset>(col_sums_.size()) < cols_->stride()) col_sums_.resize(cols_->stride(), 0.0);
  row_touched_.resize(row_sums_.size(), 0);
  col_touched_.resize(col_sums_.size(), 0);
}

Offset MegKernelForm::open(Index i, Index j) {
  const bool row_is_new = rows_->find(i) < 0, col_is_new = cols_->find(j) < 0;
  row_is_new_ = col_is_new_ = false;
  try {
    row_ = rows_->seat(i);
    row_is_new_ = row_is_new;
    col_ = cols_->seat(j);
    col_is_new_ = col_is_new;
    fit_sums();
  } catch (...) {
    close();
    throw;
  }
  return length();
}

void MegKernelForm::close() {
  if (row_is_new_) rows_->leave();
  if (col_is_new_) cols_->leave();
  row_is_new_ = col_is_new_ = false;
}

double MegKernelForm::norm2() const { return rows_->diagonal(row_) + cols_->diagonal(col_); }

double MegKernelForm::start(double* q, double* p) {
  const Offset above = rows_->stride(), n = length();
  const double square = norm2();
  if (square == 0) return 0;
  const double scale = 1 / std::sqrt(square);
  std::fill_n(q, n, 0.0);
  q[row_] = q[above + col_] = scale;
  rows_->column(row_, p);
  cols_->column(col_, p + above);
  for (Offset k = 0; k < n; ++k) p[k] *= scale;
  return square;
}

void MegKernelForm::by_a(const double* p, double* u) {
  const Offset above = rows_->stride(), below = cols_->stride();
  for (Offset k = 0; k < above; ++k) u[k] = row_sums_[k] * p[k];
  for (Offset k = 0; k < below; ++k) u[above + k] = col_sums_[k] * p[above + k];
  cells_.multiply(p, p + above, u, u + above);
}

void MegKernelForm::by_k(const double* u, double* w) {
  const Offset above = rows_->stride();
  rows_->apply(u, w);
  cols_->apply(u + above, w + above);
}

bool MegKernelForm::add(double change) {
  const Change before{row_, col_, cells_.get(row_, col_), row_sums_[row_], col_sums_[col_],
                      row_touched_[row_], col_touched_[col_]};
  if (!std::isfinite(before.cell + change) || !std::isfinite(before.row_sum + change) ||
      !std::isfinite(before.col_sum + change))
    return false;
  if (marked_) changes_.push_back(before);
  cells_.set(row_, col_, before.cell + change);
  row_sums_[row_] += change;
  col_sums_[col_] += change;
  touch(row_, col_);
  row_is_new_ = col_is_new_ = false;
  return true;
}

void MegKernelForm::mark() {
  changes_.clear();
  marked_ = true;
}

void MegKernelForm::rollback() {
  // Seats taken since stay taken, with sums of zero.
  for (; !changes_.empty(); changes_.pop_back()) {
    const Change& last = changes_.back();
    // A cell that could not be made is still absent, and is not made now: this takes no memory.
    if (cells_.get(last.row, last.col) != last.cell) cells_.set(last.row, last.col, last.cell);
    row_sums_[last.row] = last.row_sum;
    col_sums_[last.col] = last.col_sum;
    row_touched_[last.row] = last.row_touched;
    col_touched_[last.col] = last.col_touched;
  }
  marked_ = false;
}

void MegKernelForm::forget_mark() {
  changes_.clear();
  marked_ = false;
}

void MegKernelForm::take_seats(const std::vector<Index>& rows, const std::vector<Index>& cols) {
  for (Index vertex : rows) rows_->seat(vertex);
  for (Index vertex : cols) cols_->seat(vertex);
  fit_sums();
}

}  // namespace lacunar
