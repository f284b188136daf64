#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/meg/meg_forms.hpp"

namespace lacunar {

namespace {

// Whether these could be the vertices in the seats of a side: those that have one first, every other once at most.
bool could_seat(const MegSide& side, const std::vector<Index>& vertices) {
  const auto& seated = side.vertex_at();
  if (vertices.size() < seated.size() || !std::equal(seated.begin(), seated.end(), vertices.begin())) return false;
  std::vector<char> named(static_cast<std::size_t>(side.vertices()), 0);
  for (Index vertex : vertices) {
    if (vertex < 0 || vertex >= side.vertices() || named[vertex]) return false;
    named[vertex] = 1;
  }
  return true;
}

}  // namespace

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
  const double cell = cells_.get(row_, col_) + change, row_sum = row_sums_[row_] + change,
               col_sum = col_sums_[col_] + change;
  if (!std::isfinite(cell) || !std::isfinite(row_sum) || !std::isfinite(col_sum)) return false;
  cells_.set(row_, col_, cell);
  row_sums_[row_] = row_sum;
  col_sums_[col_] = col_sum;
  touch(row_, col_);
  row_is_new_ = col_is_new_ = false;
  return true;
}

MegCellState MegKernelForm::state() const {
  MegCellState state;
  state.row_seats = rows_->vertex_at();
  state.col_seats = cols_->vertex_at();
  state.row_sums.assign(row_sums_.begin(), row_sums_.begin() + rows_->seats());
  state.col_sums.assign(col_sums_.begin(), col_sums_.begin() + cols_->seats());
  cells_.list(state.cell_rows, state.cell_cols, state.cells);
  state.table = cells_.is_table();
  return state;
}

bool MegKernelForm::take(const MegCellState& state) {
  if (!could_seat(*rows_, state.row_seats) || !could_seat(*cols_, state.col_seats)) return false;
  MegCells cells;
  for (std::size_t t = 0; t < state.cells.size(); ++t)
    cells.set(state.cell_rows[t], state.cell_cols[t], state.cells[t]);
  cells.keep_as(state.table);
  for (Index vertex : state.row_seats) rows_->seat(vertex);
  for (Index vertex : state.col_seats) cols_->seat(vertex);
  for (auto* sums : {&row_sums_, &col_sums_}) std::fill(sums->begin(), sums->end(), 0.0);
  for (auto* touched : {&row_touched_, &col_touched_}) std::fill(touched->begin(), touched->end(), 0);
  fit_sums();
  std::copy(state.row_sums.begin(), state.row_sums.end(), row_sums_.begin());
  std::copy(state.col_sums.begin(), state.col_sums.end(), col_sums_.begin());
  for (std::size_t t = 0; t < state.cells.size(); ++t) touch(state.cell_rows[t], state.cell_cols[t]);
  cells_ = std::move(cells);
  return true;
}

}  // namespace lacunar
