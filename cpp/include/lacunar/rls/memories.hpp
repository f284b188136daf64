// How long the memory of a tracker should be. Every fourth column is regressed on the codes at eight factors side by
// side; their weights follow how well each predicts an entry from a code that has not seen it, before it learns the
// entry; and the tracker keeps as many rows as the weighted (geometric) mean of the memories does, as few as determine
// the columns where it has lost its subspace.
#pragma once

#include <vector>

#include "lacunar/rls/row_code.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

constexpr int kMemories = 8;
constexpr Index kMemoryEvery = 4;  // every so many columns one that is regressed at all factors

// Of every memory: discounted number of rows, the unit in which `seen` counts them, log of its weight.
enum MemoryLine { kRowsKept, kUnit, kLogWeight, kMemoryLines };

// Of a tracker. kAge: steps, or rows behind kFast and kSlow, a fast and a slow average of the log of what rows leave
// over.
enum RlsClock { kSteps, kLogDiscount, kAge, kFast, kSlow, kSingularRows, kLazySteps, kRlsClock };

// Borrowed and updated in place; the memories lie side by side. All null: the memory is not learned.
struct MemoryState {
  double* v = nullptr;        // (ceil(n_cols / kMemoryEvery), d, kMemories): rows of the basis
  double* seen = nullptr;     // (ceil(n_cols / kMemoryEvery), kMemories): discounted rows that saw the column
  double* inverse = nullptr;  // (d, d, kMemories): inverse correlations of codes
  double* lines = nullptr;    // (kMemoryLines, kMemories)
  double* rows = nullptr;     // (1): discounted number of rows that the past of the tracker weighs
  double* clock = nullptr;    // (kRlsClock)
};

class Memories {
 public:
  Memories(const MemoryState& state, Offset n_cols, int d, Offset largest);

  // What the tracker multiplies its past by at this row, before the row counts 1; the memories learn the row. `code`
  // has not seen the label and leaves `relative` of the row's squares over, `learned` may have seen it; `factored`:
  // whether `row` has a factor, without which nothing is predicted.
  double keep(RowCode& row, const Index* seen, const std::vector<double>& code, const std::vector<double>& learned,
              double relative, bool factored);

  // The ridge on a row's code: noise over the variance of a code, as far as rows say what that is, at most `most`.
  double ridge(const RowCode& row, double most) const;

  // Mean squared error at the last row's entries in columns of the memories, each predicted from the code of the others
  // in the tracker's own basis; 0 where there were none.
  double hidden_error() const { return error_; }

  // The last row's places with those entries.
  const std::vector<int>& places() const { return places_; }

  // All memories of this basis v (n_cols, d), of which so many rows tell, and alike in weight.
  void start_from(const double* v, double rows);

  // V <- V by, for a symmetric `by` (leading, leading).
  void turn(const std::vector<double>& by, int leading);

 private:
  struct Entry {
    double* v;     // (d, kMemories)
    double* seen;  // (kMemories)
    double x;
  };

  void gather(const RowCode& row, const Index* seen);
  void weigh(RowCode& row, const std::vector<double>& code);
  void add_errors(const std::vector<double>& code, const Entry& entry, double step, const double* back, double* loss);
  double evidence() const;
  void move_weights(const double* loss);
  bool lost(const RowCode& row, double relative);
  double mean_rows() const;
  void discount();
  void advance_inverses(const std::vector<double>& learned);
  void learn(const std::vector<double>& learned);
  double* line(MemoryLine which) { return s_.lines + which * kMemories; }
  const double* line(MemoryLine which) const { return s_.lines + which * kMemories; }

  MemoryState s_;
  Offset n_cols_, slots_;
  int d_;
  std::vector<Entry> entries_;
  std::vector<int> places_;
  HiddenCells cells_;
  std::vector<double> gain_, without_;  // without_ (d): the code that has not seen an entry
  double tau_[kMemories] = {}, kept_[kMemories] = {}, error_ = 0;
};

}  // namespace lacunar
