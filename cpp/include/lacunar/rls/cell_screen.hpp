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
  double* level = nullptr;      // (1): running deviation of residuals in units of their columns'; 0 at first
};

class CellScreen {
 public:
  CellScreen(const ScreenState& state, int d, Offset largest);

  // Leaves the outlying cells of the loaded row out of it, the `seen` columns being those of its cells; returns the
  // columns of the cells that are left. A row of hardly more cells than directions says nothing of its cells and stays
  // whole. Some ten times m d.
  const Index* clean(RowCode& row, const Index* seen, double ridge);

 private:
  void load_deviations(const Index* seen, int m);
  void fill_deviations(std::size_t known, int m);
  void residuals(const RowCode& row);
  double mean_size(int m, double most);
  void huber_code(const RowCode& row);
  void remember(const Index* seen, int m);

  ScreenState s_;
  int d_;
  double own_ = 0;  // deviation of this row's residuals
  std::vector<double> code_, step_, deviation_, precision_, residual_, clipped_, sizes_;
  std::vector<Index> places_, columns_;
};

}  // namespace lacunar
