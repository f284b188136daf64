// The two forms of log W = c I + sum of step y x x^T of matrix exponentiated gradient (Herbster, Pasteris, Tse 2020,
// Algorithms 1 and 2) that a Lanczos process can multiply by, with x = S z, S = K^(1/2), z = e_i + e_(m + j).
#pragma once

#include <memory>
#include <vector>

#include "lacunar/meg/meg_cells.hpp"
#include "lacunar/meg/meg_sides.hpp"

namespace lacunar {

// Lanczos runs with A K in the inner product u^T K v, where exp(S A S) is e^(A K) seen through S: no square root is
// taken.
class MegForm {
 public:
  virtual ~MegForm() = default;

  virtual bool knows(Index i, Index j) const = 0;  // whether there is such a pair
  // Makes room for the pair and says how long vectors are; `close` gives back what `open` took and nobody kept.
  virtual Offset open(Index i, Index j) = 0;
  virtual void close() = 0;
  virtual double norm2() const = 0;  // |x|^2 = z^T K z <= 1 of the open pair
  // q = z / |x| and p = K q of the open pair; returns |x|^2, and no more when that is 0.
  virtual double start(double* q, double* p) = 0;
  virtual void by_a(const double* p, double* u) = 0;  // u = A p
  virtual void by_k(const double* u, double* w) = 0;  // w = K u
  virtual Offset length() const = 0;
  virtual Offset dimension() const = 0;  // directions of log W before any update
  virtual Offset fresh() const = 0;      // directions that an update of the open pair would add

  // A += change z z^T for the open pair, which is kept; false, and nothing changed, when a sum would not be finite.
  virtual bool add(double change) = 0;
};

// What a kernel form has learned: the vertices in their seats, the sums of their steps, and cells by seats.
struct MegCellState {
  std::vector<Index> row_seats, col_seats;
  std::vector<double> row_sums, col_sums;
  std::vector<Index> cell_rows, cell_cols;
  std::vector<double> cells;
  bool table;  // whether the cells are kept as one
};

// Any side information: A = [diag(r) Y; Y^T diag(q)] over the vertices seen, K by its products.
class MegKernelForm final : public MegForm {
 public:
  MegKernelForm(std::shared_ptr<MegSide> rows, std::shared_ptr<MegSide> cols);
  bool knows(Index i, Index j) const override {
    return i >= 0 && i < rows_->vertices() && j >= 0 && j < cols_->vertices();
  }
  Offset open(Index i, Index j) override;
  void close() override;
  double norm2() const override;
  double start(double* q, double* p) override;
  void by_a(const double* p, double* u) override;
  void by_k(const double* u, double* w) override;
  Offset length() const override { return rows_->stride() + cols_->stride(); }
  Offset dimension() const override { return 0; }
  Offset fresh() const override { return !row_touched_[row_] + !col_touched_[col_]; }
  bool add(double change) override;

  MegCellState state() const;
  // A state in place of what was learned. False, and nothing changed, where a vertex is named twice, is not there, or
  // one with a seat already is not named first. Contract: sums as long as seats, cells by seats.
  bool take(const MegCellState& state);

 private:
  void fit_sums();
  void touch(Index row, Index col) { row_touched_[row] = col_touched_[col] = 1; }

  std::shared_ptr<MegSide> rows_, cols_;
  MegCells cells_;
  std::vector<double> row_sums_, col_sums_;      // Y 1 and Y^T 1 over the seats, padded
  std::vector<char> row_touched_, col_touched_;  // whether a seat has seen an update
  Index row_ = -1, col_ = -1;
  bool row_is_new_ = false, col_is_new_ = false;
};

// Features alone, K = Phi Phi^T on either side: log W lives in the d x d matrix L = sum of step y x x^T with
// x = [phi_i, psi_j] / sqrt(2), whatever the number of rows, columns and observations.
class MegFeatureForm final : public MegForm {
 public:
  MegFeatureForm(MegSource rows, Offset d_rows, MegSource cols, Offset d_cols);
  bool knows(Index i, Index j) const override { return i >= 0 && i < rows_.vertices && j >= 0 && j < cols_.vertices; }
  Offset open(Index i, Index j) override;
  void close() override {}
  double norm2() const override;
  double start(double* q, double* p) override;
  void by_a(const double* p, double* u) override;
  void by_k(const double* u, double* w) override;
  Offset length() const override { return length_; }
  Offset dimension() const override { return d_rows_ + d_cols_; }
  Offset fresh() const override { return 0; }
  bool add(double change) override;

  // Tables with as many rows or more and the same columns; false, and nothing changed, for others.
  bool grow(MegSource rows, MegSource cols);
  std::vector<double>& matrix() { return matrix_; }  // lower triangle, rows i of 8 (i / 8 + 1) doubles

 private:
  MegSource rows_, cols_;
  Offset d_rows_, d_cols_, length_;
  double scale_;
  std::vector<double> matrix_, x_;
};

}  // namespace lacunar
