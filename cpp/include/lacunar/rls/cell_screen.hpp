// Which cells of a row a robust tracker leaves out: those that lie further from a Huber code of the row than their
// column's deviations allow.
#pragma once

#include <vector>

#include "lacunar/rls/row_code.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// Borrowed and updated in place. All null: no cell is left out.
struct ScreenState {
  double* deviation = nullptr;  // (n_cols): of a column's residuals, up to the common level; 0 before it is seen
  double* left_out = nullptr;   // (n_cols): cells of a column that lay too far, one after another
  double* level = nullptr;      // (3): running deviation of residuals in units of their columns', share of far cells,
                                // rows + kFirstRows; 0 at first
};

class CellScreen {
 public:
  CellScreen(const ScreenState& state, int d, Offset largest);

  // Leaves the outlying cells of the loaded row out of it, the `seen` columns being those of its cells; returns the
  // columns of the cells that are left: `seen` itself where all are. The row must have its factor, and needs another
  // where cells were left out. A row of hardly more cells than directions says nothing of its cells and stays whole.
  const Index* clean(RowCode& row, const Index* seen);

  // Where the row had no large error and is whole: swaps its least-squares code (leading) and its errors (m) in.
  bool take_errors(std::vector<double>& code, std::vector<double>& errors);

 private:
  void load_deviations(const Index* seen, int m);
  void fill_deviations(int m);
  void load_errors(const RowCode& row);
  double square_of(int m, double square, bool* all_below);
  void huber_code(const RowCode& row);
  void follow(int m);
  void choose(const Index* seen, int m, double level, double least);
  void find_far(int m, double most, double least);

  ScreenState s_;
  int d_;
  double own_ = 0;      // deviation of this row's errors
  double n_cut_ = 0;    // errors that the last sum has cut
  bool usual_ = false;  // no error of the row is large, and the code is that of least squares
  std::vector<double> code_, step_, deviation_, error_, squares_, sizes_;
  std::vector<Index> places_, far_, columns_;
};

}  // namespace lacunar
