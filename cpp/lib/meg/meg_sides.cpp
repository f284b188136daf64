#include "lacunar/meg/meg_sides.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lacunar/kernels.hpp"

namespace lacunar {

// Without memory for it nobody is seated.
Index MegSide::seat(Index vertex) {
  Index& seat = seat_of_[vertex];
  if (seat < 0) {
    vertex_at_.push_back(vertex);
    try {
      seated(vertex);
    } catch (...) {
      vertex_at_.pop_back();
      throw;
    }
    seat = static_cast<Index>(vertex_at_.size()) - 1;
  }
  return seat;
}

void MegSide::leave() {
  seat_of_[vertex_at_.back()] = -1;
  vertex_at_.pop_back();
}

// Block row b starts behind 8 * 8 * (1 + ... + b) doubles.
Offset MegDense::at(Offset row, Offset col) {
  const Offset block = row / 8;
  return 32 * block * (block + 1) + row % 8 * (8 * block + 8) + col;
}

bool MegDense::grow(MegSource kernel) {
  if (kernel.vertices < vertices() || kernel.leading < kernel.vertices) return false;
  resize(kernel.vertices);
  kernel_ = std::move(kernel);
  return true;
}

void MegDense::seated(Index vertex) {
  const Index last = static_cast<Index>(seats() - 1);
  if (last % 8 == 0) blocks_.resize(at(last + 8, 0), 0.0);
  for (Index k = 0; k <= last; ++k) blocks_[at(last, k)] = 0.5 * kernel_.at(vertex, vertex_at_[k]);
  for (Index k = last / 8 * 8; k < last; ++k) blocks_[at(k, last)] = blocks_[at(last, k)];
}

void MegDense::leave() {
  MegSide::leave();
  // Padding stays zero: a product would otherwise leak into the padding of its result.
  const Offset last = seats();
  for (Offset k = last / 8 * 8; k <= last; ++k) blocks_[at(k, last)] = 0;
  std::fill_n(&blocks_[at(last, 0)], last + 1, 0.0);
}

void MegDense::column(Index seat, double* out) const {
  std::copy_n(&blocks_[at(seat, 0)], seat + 1, out);
  for (Offset k = seat + 1; k < seats(); ++k) out[k] = blocks_[at(k, seat)];
  std::fill(out + seats(), out + stride(), 0.0);
}

void MegDense::apply(const double* x, double* out) {
  kernels().small.symmetric(blocks_.data(), static_cast<int>(seats()), x, out);
}

MegFactor::MegFactor(MegSource phi, double own, double constant)
    : MegSide(phi.vertices),
      phi_(std::move(phi)),
      d_(phi_.leading),
      leading_(padded(d_)),
      own_(own / 2),
      constant_(constant / 2),
      code_(leading_) {}

bool MegFactor::grow(MegSource phi) {
  if (phi.vertices < vertices() || phi.leading != d_) return false;
  resize(phi.vertices);
  phi_ = std::move(phi);
  return true;
}

void MegFactor::seated(Index vertex) {
  rows_.resize(stride() * leading_, 0.0);
  double* row = rows_.data() + (seats() - 1) * leading_;
  for (Index k = 0; k < d_; ++k) row[k] = std::sqrt(0.5) * phi_.at(vertex, k);
}

void MegFactor::leave() {
  MegSide::leave();
  std::fill_n(rows_.data() + seats() * leading_, leading_, 0.0);
}

double MegFactor::diagonal(Index seat) const {
  const double* row = rows_.data() + seat * leading_;
  return std::inner_product(row, row + d_, row, own_ + constant_);
}

void MegFactor::column(Index seat, double* out) const {
  kernels().small.project(rows_.data(), rows_.data() + seat * leading_, static_cast<int>(seats()),
                          static_cast<int>(leading_), out);
  for (Offset k = 0; k < seats(); ++k) out[k] += constant_;
  out[seat] += own_;
  std::fill(out + seats(), out + stride(), 0.0);
}

void MegFactor::apply(const double* x, double* out) {
  const int n = static_cast<int>(seats()), leading = static_cast<int>(leading_);
  kernels().small.combine(rows_.data(), x, n, leading, code_.data());
  kernels().small.project(rows_.data(), code_.data(), n, leading, out);
  const double shared = constant_ == 0 ? 0 : constant_ * std::accumulate(x, x + n, 0.0);
  for (int k = 0; k < n; ++k) out[k] += own_ * x[k] + shared;
  std::fill(out + n, out + stride(), 0.0);
}

MegOperator::MegOperator(std::vector<double> diagonal, Apply apply)
    : MegSide(static_cast<Offset>(diagonal.size())), diagonal_(std::move(diagonal)), apply_(std::move(apply)) {
  for (double& value : diagonal_) value /= 2;
  vertex_at_.resize(diagonal_.size());
  std::iota(vertex_at_.begin(), vertex_at_.end(), 0);
  seat_of_ = vertex_at_;
}

void MegOperator::halve(double* out) const {
  for (Offset k = 0; k < seats(); ++k) out[k] /= 2;
  std::fill(out + seats(), out + stride(), 0.0);
}

void MegOperator::column(Index seat, double* out) const {
  std::vector<double> unit(stride(), 0.0);
  unit[seat] = 1;
  apply_(unit.data(), out);
  halve(out);
}

void MegOperator::apply(const double* x, double* out) {
  apply_(x, out);
  halve(out);
}

}  // namespace lacunar
