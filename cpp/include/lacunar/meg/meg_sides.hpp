// Side information about the rows or the columns of a matrix, as matrix exponentiated gradient uses it: half a kernel K
// with diagonal <= 1, over the vertices that take part. A vertex takes part by having a seat; what was never seen costs
// nothing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

inline Offset padded(Offset length) { return (length + 7) / 8 * 8; }

// A table borrowed for as long as `keeper` lives.
struct MegSource {
  const double* data = nullptr;
  Offset vertices = 0, leading = 0;
  std::shared_ptr<const void> keeper;

  double at(Index i, Index j) const { return data[i * leading + j]; }
};

class MegSide {
 public:
  virtual ~MegSide() = default;

  Offset vertices() const { return static_cast<Offset>(seat_of_.size()); }
  Offset seats() const { return static_cast<Offset>(vertex_at_.size()); }
  Offset stride() const { return padded(seats()); }  // length of a vector over the seats, padded with zeros
  const std::vector<Index>& vertex_at() const { return vertex_at_; }

  // The seat of a vertex, or -1; and the same with the next seat given to a vertex that has none.
  Index find(Index vertex) const { return seat_of_[vertex]; }
  Index seat(Index vertex);
  // The last seat is given back.
  virtual void leave();
  // A table over as many vertices or more in place of the one so far; false, and nothing changed, where it does not
  // fit.
  virtual bool grow(MegSource) { return false; }

  virtual double diagonal(Index seat) const = 0;           // K/2 at a seat
  virtual void column(Index seat, double* out) const = 0;  // out (stride) = K/2 e_seat
  virtual void apply(const double* x, double* out) = 0;    // out (stride) = K/2 x

 protected:
  explicit MegSide(Offset vertices) : seat_of_(vertices, -1) {}
  virtual void seated(Index vertex) = 0;
  void resize(Offset vertices) { seat_of_.resize(vertices, -1); }

  std::vector<Index> seat_of_, vertex_at_;
};

// K given whole (vertices, vertices). Over the seats its lower triangle is kept as rows i of 8 (i / 8 + 1) doubles with
// full diagonal blocks: half the memory and one read of it a product.
class MegDense final : public MegSide {
 public:
  explicit MegDense(MegSource kernel) : MegSide(kernel.vertices), kernel_(std::move(kernel)) {}
  bool grow(MegSource kernel) override;
  void leave() override;
  double diagonal(Index seat) const override { return blocks_[at(seat, seat)]; }
  void column(Index seat, double* out) const override;
  void apply(const double* x, double* out) override;

 private:
  void seated(Index vertex) override;
  static Offset at(Offset row, Offset col);

  MegSource kernel_;
  std::vector<double> blocks_;
};

// K = Phi Phi^T + own I + constant 11^T with Phi (vertices, d).
class MegFactor final : public MegSide {
 public:
  MegFactor(MegSource phi, double own, double constant);
  bool grow(MegSource phi) override;
  void leave() override;
  double diagonal(Index seat) const override;
  void column(Index seat, double* out) const override;
  void apply(const double* x, double* out) override;

 private:
  void seated(Index vertex) override;

  MegSource phi_;
  Offset d_, leading_;
  double own_, constant_;            // halved
  std::vector<double> rows_, code_;  // Phi / sqrt(2) over the seats (stride, leading), and Phi^T x
};

// K known by its products only; every vertex has its seat from the start. Both write `vertices` values of K x, not
// halved.
class MegOperator final : public MegSide {
 public:
  using Apply = std::function<void(const double* x, double* out)>;
  MegOperator(std::vector<double> diagonal, Apply apply);
  void leave() override {}
  double diagonal(Index seat) const override { return diagonal_[seat]; }
  void column(Index seat, double* out) const override;
  void apply(const double* x, double* out) override;

 private:
  void seated(Index) override {}
  void halve(double* out) const;

  std::vector<double> diagonal_;
  Apply apply_;
};

}  // namespace lacunar
