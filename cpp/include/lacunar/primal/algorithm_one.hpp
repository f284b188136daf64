// Algorithm 1 of KARMA as one object, whatever holds v: a weight table that every row enters at once, a table that rows
// enter by blocks, or stored rows alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/primal/lane_block.hpp"
#include "lacunar/primal/primal.hpp"
#include "lacunar/primal/step_clock.hpp"
#include "lacunar/primal/table_range.hpp"
#include "lacunar/primal/training_set.hpp"

namespace lacunar {

// Rows with coefficients. The arrays may be longer than the `count` rows in use need.
template <class T>
struct Support {
  Offset count = 0;
  std::vector<Offset> offsets{0};
  std::vector<Index> indices;
  std::vector<T> values;
  std::vector<T> scale;           // 1 / sqrt(k(x, x)) for the cosine, or empty
  std::vector<double> curvature;  // k(x, x) under a budget, or empty
  std::vector<double> first;      // (count, outputs): v = clock[kScale] * sum_i first_i phi(x_i)
  std::vector<double> second;

  Rows<T> rows(Offset n_cols) const { return {offsets.data(), indices.data(), values.data(), count, n_cols}; }
  Offset entries() const { return offsets[static_cast<std::size_t>(count)]; }
};

template <class T>
struct Layout {
  Offset n_cols, outputs;
  std::optional<FeatureMap> map;  // of the tables; none: stored rows alone
  T* first;                       // (rows, outputs, width), the caller's
  T* second;                      // null, where only the last iterate is asked for
  Offset block;   // rows that enter the tables together, 0: each at once; without tables, rows that threads share
  Offset budget;  // most stored rows; 0: all
};

// Sums run in order of arrival, each lane by itself, so that groups, blocks and threads of any size give the same bits.
template <class T>
class AlgorithmOne {
 public:
  explicit AlgorithmOne(const Layout<T>& layout) : layout_(layout) {}

  // A step for every row of the order. Values (n_rows, outputs) are those before a row's own step. Returns the row
  // whose values or step are not finite, or -1. However it ends, rows are learned whole: the first ones, as many as the
  // clock says, and of those no stored row is beyond the budget. No feature of the rows is larger than `largest`. The
  // kernel is not looked at where every row enters the tables at once.
  Offset learn(const RowKernel<T>& kernel, const TrainingSet<T>& training, const StepRule& rule, double largest,
               double* values, int n_threads);

  // Values (n_rows, outputs) of sum_i coef_i k(x_i, .) over the stored rows; scale as of a training set.
  void decide(const RowKernel<T>& kernel, const Rows<T>& rows, const double* scale, const double* coef, double* values,
              int n_threads) const;

  // Coefficients (stored rows, outputs) of an iterate.
  std::vector<double> coefficients(Iterate iterate) const;

  // Adds the stored rows to tables, of which the second may be null: all of them, or none where memory does not hold a
  // copy.
  void add_stored(T* first, T* second, int n_threads) const;

  const double* clock() const { return clock_; }
  double lost() const { return lost_; }  // sum over dropped rows of |coef| sqrt(k(x, x)), each when it was dropped
  const Layout<T>& layout() const { return layout_; }
  // As they are now: rows that come later are in other places, and what changes these makes a copy.
  std::shared_ptr<const Support<T>> stored() const { return stored_; }

  // Goes on from these, and from what the tables hold now.
  void restore(const double* clock, double lost, std::shared_ptr<Support<T>> stored);

 private:
  class Descent;

  Offset learn_stored(const RowKernel<T>& kernel, const TrainingSet<T>& training, const StepRule& rule, double* values,
                      int n_threads);
  Offset rows_at_once(Offset done) const;
  void values_of_table(const TrainingSet<T>& part, double* base, int n_threads) const;
  void make_room(const TrainingSet<T>& part);
  void enter_tables(int n_threads);
  void keep_to_budget(Iterate iterate);
  void fold_sums(double scale, double reach);

  Layout<T> layout_;
  double clock_[kStepClock] = {0, 1, 0}, lost_ = 0;
  std::shared_ptr<Support<T>> stored_ = std::make_shared<Support<T>>();
  TableRange<T> range_;
};

}  // namespace lacunar
