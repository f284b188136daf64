#include "lacunar/row_code.hpp"

#include <algorithm>
#include <limits>

#include "lacunar/kernels.hpp"
#include "lacunar/small_dense.hpp"

namespace lacunar {

RowCode::RowCode(int rank, Offset largest) : d(rank), leading(padded(rank)) {
  const std::size_t side = static_cast<std::size_t>(leading), entries = static_cast<std::size_t>(largest);
  rows.resize(entries * side);
  x.resize(entries);
  for (auto* square : {&gram, &factor_}) square->resize(side * side);
  for (auto* line : {&right, &scratch_}) line->resize(side);
}

template <class T>
void RowCode::load(const T* entries, int count) {
  m = count;
  size = 0;
  for (int i = 0; i < m; ++i) {
    const double value = static_cast<double>(entries[i]);
    x[static_cast<std::size_t>(i)] = value;
    size += value * value;
  }
  kernels().small.gram(rows.data(), m, leading, gram.data());
  kernels().small.combine(rows.data(), x.data(), m, leading, right.data());
}

template void RowCode::load<float>(const float*, int);
template void RowCode::load<double>(const double*, int);

double RowCode::gram_trace() const {
  double trace = 0;
  for (int i = 0; i < d; ++i) trace += gram[static_cast<std::size_t>(i * leading + i)];
  return trace;
}

bool RowCode::factorise(double ridge, const double* inner, double least) {
  factor_ = gram;
  if (inner == nullptr)
    for (int i = 0; i < d; ++i) factor_[static_cast<std::size_t>(i * leading + i)] += ridge;
  else
    for (std::size_t i = 0; i < factor_.size(); ++i) factor_[i] += ridge * inner[i];
  return cholesky(factor_.data(), d, leading, least * gram_trace() / d);
}

void RowCode::rescue(double ridge) {
  const double mean = gram_trace() / d, amount = std::max(ridge, kRescue * (mean > 0 ? mean : 1));
  factor_ = gram;
  for (int i = 0; i < d; ++i) factor_[static_cast<std::size_t>(i * leading + i)] += amount;
  cholesky(factor_.data(), d, leading, std::numeric_limits<double>::min());
}

int RowCode::shortest(const double* t, const double* along, double label, std::vector<double>& code) {
  const std::size_t entries = static_cast<std::size_t>(m), side = static_cast<std::size_t>(leading);
  tall_.resize(std::max(tall_.size(), (entries + 1) * side));
  aim_.assign(x.begin(), x.begin() + m);
  if (t == nullptr)
    std::copy_n(rows.begin(), entries * side, tall_.begin());
  else
    kernels().small.multiply(rows.data(), t, m, leading, tall_.data());
  if (along != nullptr) {
    std::copy_n(along, side, tall_.begin() + static_cast<Offset>(entries * side));
    aim_.push_back(label);
  }
  return least_norm(tall_.data(), aim_.data(), static_cast<int>(aim_.size()), d, leading, code.data(), work_);
}

void RowCode::solve(const std::vector<double>& of, std::vector<double>& out) const {
  std::copy(of.begin(), of.end(), out.begin());
  cholesky_solve(factor_.data(), d, leading, out.data());
}

// |x|^2 - 2 a b + a G a: no second look at the rows.
double RowCode::left(const std::vector<double>& code) {
  kernels().small.project(gram.data(), code.data(), leading, leading, scratch_.data());
  return std::max(size - 2 * dot(code.data(), right.data(), d) + dot(code.data(), scratch_.data(), d), 0.0);
}

// L^-T L^-1 from the columns of L^-1, kept in scratch rows.
void RowCode::inverse(double* packed) {
  std::vector<double>& root = inverse_root_;
  root.assign(static_cast<std::size_t>(d * d), 0.0);  // root (d, d): row c holds column c of L^-1
  for (int c = 0; c < d; ++c)
    for (int i = c; i < d; ++i) {
      const double* row = factor_.data() + i * leading;
      const double* column = root.data() + c * d;
      double sum = i == c ? 1.0 : 0.0;
      for (int k = c; k < i; ++k) sum -= row[k] * column[k];
      root[static_cast<std::size_t>(c * d + i)] = sum / row[i];
    }
  for (int i = 0; i < d; ++i)
    for (int k = 0; k <= i; ++k) *packed++ = dot(root.data() + i * d + i, root.data() + k * d + i, d - i);
}

// |L^-1|^2, column by column.
double RowCode::inverse_trace() {
  double total = 0;
  for (int column = 0; column < d; ++column) {
    for (int i = column; i < d; ++i) {
      const double* row = factor_.data() + i * leading;
      double sum = i == column ? 1.0 : 0.0;
      for (int k = column; k < i; ++k) sum -= row[k] * scratch_[static_cast<std::size_t>(k)];
      const double entry = sum / row[i];
      scratch_[static_cast<std::size_t>(i)] = entry;
      total += entry * entry;
    }
  }
  return total;
}

}  // namespace lacunar
