// The sums of steps over the cells of a matrix, kept as a table or as lists of the cells touched, whichever is the
// quicker to multiply by.
#pragma once

#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

struct MegCell {
  Index col;
  double value;
};

class MegCells {
 public:
  double get(Index row, Index col) const;
  // Sets a cell; the extents grow to hold it, or nothing changes. O(cells of the row) as lists, O(1) as a table.
  void set(Index row, Index col, double value);

  // to_rows += Y x_cols and to_cols += Y^T x_rows, vectors padded with zeros to a multiple of eight.
  void multiply(const double* x_rows, const double* x_cols, double* to_rows, double* to_cols) const;

  // Cells that are not zero, in order of rows.
  void list(std::vector<Index>& rows, std::vector<Index>& cols, std::vector<double>& values) const;

  bool is_table() const { return is_table_; }
  void keep_as(bool table);

 private:
  void reach(Offset rows, Offset cols);
  void make_room(Offset rows, Offset cols);
  double* cell(Index row, Index col) { return table_.data() + row * leading_ + col; }

  Offset rows_ = 0, cols_ = 0, count_ = 0;  // extents, and cells touched
  bool is_table_ = true;
  Offset leading_ = 0;  // of the table
  std::vector<double> table_;
  std::vector<std::vector<MegCell>> lists_;
};

}  // namespace lacunar
