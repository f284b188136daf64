// KARMA in its own feature space: f(x) = sum_r q_r V[r] . x~ over the rows r of a weight table that the observed
// columns of x name. x~ holds the values of x, the constant and, weighted, the observed-indicators (the kernel is
// linear in it).
#pragma once

#include <cstdint>
#include <vector>

#include "lacunar/primal/training_set.hpp"
#include "lacunar/primal/losses.hpp"
#include "lacunar/primal/step_clock.hpp"
#include "lacunar/primal/table_range.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// g(u) = 1 + u + ... of gamma 1, 2, 3 as rows: one for all (weight q[0]), one a column (q[1]), one a pair of columns
// (q[2]).
struct FeatureMap {
  int gamma;
  Offset n_cols;     // of the data; with a constant there is one more, always observed
  double constant;   // 0: none
  double indicator;  // weight of the indicators in x~; 0: none
  double weight[3];  // q
  int hash_bits;     // 0: the whole table; else it is folded to 2^hash_bits entries, signs and places hashed

  Offset columns() const { return n_cols + (constant != 0); }
  Offset width() const { return (columns() * (indicator != 0 ? 2 : 1) + 15) / 16 * 16; }
  Offset rows() const { return 1 + (gamma > 1 ? columns() : 0) + (gamma > 2 ? columns() * (columns() - 1) / 2 : 0); }
  Offset table_size() const { return hash_bits > 0 ? Offset{1} << hash_bits : rows() * width(); }  // of one output
};

// One row of data in that space, made anew for every row: dense x~ or its entries, and the rows of the table it meets.
template <class T>
class Featurizer {
 public:
  Featurizer(const FeatureMap& map, const Rows<T>& rows, const double* row_scale);

  void load(Offset row);
  void prefetch_start(Offset row) const;  // of where the row's data are
  void prefetch(Offset row) const;

  // f of one output, table (rows, outputs, width): the `output`-th slice.
  double dot(const T* table, Offset outputs, Offset output) const;
  // table += c features, without the weights q: they belong to `dot`.
  void add(T* table, Offset outputs, Offset output, double c) const;
  Offset operations() const;  // of one of these, about

  // The same by parts of a dense row, so that threads can share it: sums (gamma, parts) of which everyone fills in
  // some, f from all of them, and the addition to some.
  Offset entries(Offset seen) const;  // of x~, of a row with so many
  Offset entries_of(Offset row) const { return entries(data_.offsets[row + 1] - data_.offsets[row]); }
  bool is_dense(Offset entries) const { return !is_sparse(entries); }
  Offset parts() const { return parts_; }
  Offset part_start(Offset part) const;
  // Here a table has rows `stride` apart and begins with part `begin` of an output.
  void dot_parts(const T* table, Offset stride, Offset begin, Offset end, double* sums) const;
  double dot_of(const double* sums) const;
  void add_parts(T* table, Offset stride, Offset begin, Offset end, double c) const;

  bool is_dense() const { return !sparse_; }
  void copy(T* x, std::uint64_t* met, std::uint64_t bit) const;  // a dense row, as one of WaitingRows

 private:
  struct Group {
    Offset first, count;
  };
  bool is_sparse(Offset entries) const;
  double dot_group(const T* table, Offset stride, const Group& group) const;
  void hash_ids();

  const FeatureMap& map_;
  const Rows<T>& data_;
  const double* row_scale_;  // (n_rows), or null
  Offset width_, parts_;
  bool sparse_ = true;         // the row's entries are few enough to gather
  std::vector<T> dense_;       // (width), zero but for the entries of a dense row; empty before the first
  std::vector<Index> places_;  // of the entries in x~
  std::vector<T> values_;      // of the entries
  std::vector<Index> seen_;    // observed columns, the constant's included
  std::vector<Index> ids_;     // rows of the table, by group
  std::vector<std::uint64_t> row_hash_, place_hash_;
  Group groups_[3] = {};
};

// Algorithm 1 where every row enters the tables at once: values (n_rows, outputs) before every row's own step. Tables
// (rows, outputs, width); second may be null, as may the curvature where the loss is not quadratic. Returns the row
// whose values or whose step left the finite numbers, which is not learned, or -1. The same for any number of threads.
template <class T>
Offset primal_descend(const FeatureMap& map, const TrainingSet<T>& training, const StepRule& rule, T* first, T* second,
                      double* clock, TableRange<T>& range, double* values, int n_threads);

// first <- scale first and second <- second - reach first, of `size` numbers: v = first from here on. second may be
// null.
template <class V>
void fold(std::size_t size, V* first, V* second, double scale, double reach);

// What dual coordinate ascent keeps of its rows; (n_rows) or (n_rows, outputs) where not said.
struct Ascent {
  double* beta;
  Index* idle;  // visits in a row that changed nothing: such a row rests, for 15 sweeps of 16 at most
  Offset sweep;
  double* gap;  // (outputs), to which the gaps of the coordinates met are added: they estimate the duality gap
};

// One sweep; weight and curvature of the training are needed. As primal_descend.
template <class T>
Offset primal_ascend(const FeatureMap& map, const TrainingSet<T>& training, const Ascent& ascent, const PointLoss& loss,
                     double epsilon, T* table, int n_threads);

// values (n_rows, outputs) of a table; the same for any number of threads.
template <class T>
void primal_decide(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs, const T* table,
                   double* values, int n_threads);

}  // namespace lacunar
