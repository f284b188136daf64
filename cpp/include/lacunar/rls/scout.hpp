// A second tracker beside PETRELS that forgets fast and takes its place where it surely predicts better. All columns
// share one correlation, so that it costs a third of the tracker.
#pragma once

#include <vector>

#include "lacunar/rls/row_code.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// kGain, kGainSquare: running mean and mean square of its gain; kSince: rows since it took the tracker's place;
// kScoutRows: discounted number of rows; kScoutUnit: the unit in which `seen` counts them.
enum ScoutLine { kGain, kGainSquare, kSince, kScoutRows, kScoutUnit, kScoutLines };

// Borrowed and updated in place. All null: there is no scout.
struct ScoutState {
  double* v = nullptr;        // (n_cols, d)
  double* inverse = nullptr;  // (d, d): inverse correlation of its codes
  double* seen = nullptr;     // (n_cols): discounted rows that saw a column
  double* line = nullptr;     // (kScoutLines)
};

class Scout {
 public:
  Scout(const ScoutState& state, Offset n_cols, int d, double ridge, Offset largest);

  bool exists() const { return s_.v != nullptr; }

  // Learns the cells of the tracker's row, which lie in the columns `seen`; at those of `hidden` it first predicts each
  // from the code of the others. A step that is not finite is not made.
  void learn(const RowCode& of, const Index* seen, const std::vector<int>& hidden);

  // Whether it surely predicts better than the tracker, whose mean squared error at the hidden cells this is.
  bool better(double error);

  const double* v() const { return s_.v; }
  const double* inverse() const { return s_.inverse; }
  double rows() const { return s_.line[kScoutRows]; }
  double seen(Offset j) const { return s_.seen[j] * s_.line[kScoutUnit]; }
  double rows_kept() const { return rows_kept_; }  // for how many rows it remembers

  // blocks (rls_stride<double>(d)) = inverse correlation of column j.
  void column_inverse(Offset j, double* blocks) const;

 private:
  void move_columns(const Index* seen, double tau);
  void discount();
  double known_share() const;  // of columns: those that it saw as often as they have unknowns

  ScoutState s_;
  Offset n_cols_;
  int d_;
  double ridge_, error_ = 0, rows_kept_ = 0;
  RowCode row_;
  HiddenCells cells_;
  std::vector<double> code_, gain_, fitted_;
};

}  // namespace lacunar
