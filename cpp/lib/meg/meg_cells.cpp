#include "lacunar/meg/meg_cells.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "lacunar/kernels.hpp"
#include "lacunar/meg/meg_sides.hpp"

namespace lacunar {

namespace {

// Lists are the quicker below about 15 % of cells touched; the gap between the two shares keeps a matrix on the border
// from turning to and fro. A small table fits the caches whatever its density.
constexpr double kTableShare = 0.15, kListShare = 0.08;
constexpr Offset kSmallTable = 64 * 64;

auto find_in(std::vector<MegCell>& list, Index col) {
  return std::find_if(list.begin(), list.end(), [col](const MegCell& cell) { return cell.col == col; });
}

}  // namespace

double MegCells::get(Index row, Index col) const {
  if (row >= rows_ || col >= cols_) return 0;
  if (is_table_) return table_[row * leading_ + col];
  for (const MegCell& cell : lists_[row])
    if (cell.col == col) return cell.value;
  return 0;
}

void MegCells::set(Index row, Index col, double value) {
  reach(std::max<Offset>(rows_, row + 1), std::max<Offset>(cols_, col + 1));
  if (is_table_) {
    double& held = *cell(row, col);
    count_ += (held == 0) - (value == 0);
    held = value;
  } else {
    const auto held = find_in(lists_[row], col);
    if (held != lists_[row].end()) {
      held->value = value;
    } else {
      lists_[row].push_back({col, value});
      ++count_;
    }
  }
  if (!is_table_ && static_cast<double>(count_) > kTableShare * static_cast<double>(rows_ * cols_)) try {
      keep_as(true);
    } catch (const std::bad_alloc&) {  // slower, and as right
    }
}

// A table that would be nearly empty is given up before it is made.
void MegCells::reach(Offset rows, Offset cols) {
  if (rows == rows_ && cols == cols_) return;
  const bool nearly_empty = static_cast<double>(count_) < kListShare * static_cast<double>(rows * cols);
  if (is_table_ && rows * cols > kSmallTable && nearly_empty) keep_as(false);
  make_room(rows, cols);
  rows_ = rows;
  cols_ = cols;
}

// Extents change only behind what holds them, so that a lack of memory changes nothing.
void MegCells::make_room(Offset rows, Offset cols) {
  if (!is_table_) {
    lists_.resize(std::max<Offset>(lists_.size(), rows));
    return;
  }
  if (cols > leading_) {
    const Offset wider = padded(std::max(cols, 2 * leading_));
    std::vector<double> moved(padded(rows) * wider, 0.0);
    const Offset held = leading_ == 0 ? 0 : static_cast<Offset>(table_.size()) / leading_;
    for (Offset i = 0; i < held; ++i) std::copy_n(&table_[i * leading_], leading_, &moved[i * wider]);
    table_.swap(moved);
    leading_ = wider;
  }
  if (static_cast<Offset>(table_.size()) < padded(rows) * leading_) table_.resize(padded(rows) * leading_, 0.0);
}

void MegCells::keep_as(bool table) {
  if (table == is_table_) return;
  std::vector<Index> rows, cols;
  std::vector<double> values;
  list(rows, cols, values);
  MegCells cells;
  cells.is_table_ = table;
  cells.count_ = static_cast<Offset>(values.size());
  cells.make_room(rows_, cols_);
  cells.rows_ = rows_;
  cells.cols_ = cols_;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (table)
      *cells.cell(rows[k], cols[k]) = values[k];
    else
      cells.lists_[rows[k]].push_back({cols[k], values[k]});
  *this = std::move(cells);
}

void MegCells::multiply(const double* x_rows, const double* x_cols, double* to_rows, double* to_cols) const {
  if (is_table_) {
    kernels().meg.rectangle(table_.data(), leading_, padded(rows_), padded(cols_), x_rows, x_cols, to_rows, to_cols);
    return;
  }
  for (Offset i = 0; i < rows_; ++i) {
    const double down = x_rows[i];
    double across = 0;
    for (const MegCell& cell : lists_[i]) {
      across += cell.value * x_cols[cell.col];
      to_cols[cell.col] += cell.value * down;
    }
    to_rows[i] += across;
  }
}

void MegCells::list(std::vector<Index>& rows, std::vector<Index>& cols, std::vector<double>& values) const {
  const auto take = [&](Offset row, Index col, double value) {
    if (value == 0) return;
    rows.push_back(static_cast<Index>(row));
    cols.push_back(col);
    values.push_back(value);
  };
  for (Offset i = 0; i < rows_; ++i)
    if (is_table_)
      for (Index j = 0; j < cols_; ++j) take(i, j, table_[i * leading_ + j]);
    else
      for (const MegCell& cell : lists_[i]) take(i, cell.col, cell.value);
}

}  // namespace lacunar
