#include "lacunar/rls/row_code.hpp"

#include <algorithm>
#include <limits>

#include "lacunar/kernels.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {

RowCode::RowCode(int rank, Offset largest) : d(rank), leading(padded(rank)) {
  const std::size_t side = static_cast<std::size_t>(leading),
                    most = static_cast<std::size_t>(padded(static_cast<int>(largest)));
  rows.resize(most * side);
  for (auto* line : {&values, &x}) line->resize(most);
  for (auto* square : {&gram, &factor_}) square->resize(side * side);
  for (auto* line : {&right, &scratch_}) line->resize(side);
}

template <class T>
void RowCode::load(const T* of, int count) {
  m = count;
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) x[i] = values[i] = static_cast<double>(of[i]);
  size = dot(x.data(), x.data(), m);
  kernels().small.gram(rows.data(), m, leading, gram.data());
  kernels().small.combine(rows.data(), x.data(), m, leading, right.data());
}

void RowCode::leave_out(const std::vector<Index>& places, Index* columns) {
  const auto side = static_cast<Offset>(leading), count = static_cast<Offset>(places.size());
  out_.resize(std::max(out_.size(), static_cast<std::size_t>(count * side) + gram.size()));
  double *out = out_.data(), *lost = out + count * side;
  for (Offset k = count; k-- > 0;) {
    const Offset place = places[static_cast<std::size_t>(k)], last = --m;
    std::copy_n(rows.begin() + place * side, side, out + k * side);
    std::copy_n(rows.begin() + last * side, side, rows.begin() + place * side);
    for (auto* line : {&values, &x}) (*line)[static_cast<std::size_t>(place)] = (*line)[static_cast<std::size_t>(last)];
    columns[place] = columns[last];
  }
  kernels().small.gram(out, static_cast<int>(count), leading, lost);
  for (std::size_t i = 0; i < gram.size(); ++i) gram[i] -= lost[i];
  size = dot(x.data(), x.data(), m);
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
  return kernels().factor.factorise(factor_.data(), d, leading, least * gram_trace() / d);
}

void RowCode::rescue(double ridge) {
  const double mean = gram_trace() / d, amount = std::max(ridge, kRescue * (mean > 0 ? mean : 1));
  factor_ = gram;
  for (int i = 0; i < d; ++i) factor_[static_cast<std::size_t>(i * leading + i)] += amount;
  kernels().factor.factorise(factor_.data(), d, leading, std::numeric_limits<double>::min());
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
  kernels().factor.solve(factor_.data(), d, leading, out.data());
}

// |x|^2 - 2 a b + a G a: no second look at the rows.
double RowCode::left(const std::vector<double>& code) {
  kernels().small.project(gram.data(), code.data(), leading, leading, scratch_.data());
  return std::max(size - 2 * dot(code.data(), right.data(), d) + dot(code.data(), scratch_.data(), d), 0.0);
}

double RowCode::hide(const std::vector<int>& places, const std::vector<double>& code, HiddenCells& cells) {
  const std::size_t count = places.size(), side = static_cast<std::size_t>(leading);
  if (count == 0) return 0;
  for (auto* line : {&cells.error, &cells.free}) line->resize(std::max(line->size(), count));
  cells.back.resize(std::max(cells.back.size(), count * side));
  tall_.resize(std::max(tall_.size(), count * side));
  for (std::size_t k = 0; k < count; ++k)
    std::copy_n(rows.begin() + static_cast<Offset>(places[k]) * leading, side,
                tall_.begin() + static_cast<Offset>(k * side));
  invert();
  kernels().small.multiply(tall_.data(), inverse_.data(), static_cast<int>(count), leading, cells.back.data());
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double* own = tall_.data() + k * side;
    cells.free[k] = 1 - dot(own, cells.back.data() + k * side, d);
    cells.error[k] = values[static_cast<std::size_t>(places[k])] - dot(own, code.data(), d);
    const double told = cells.error[k] / std::max(cells.free[k], kLeastTold);
    sum += told * told;
  }
  return sum / static_cast<double>(count);
}

// From the root W = U^-T: W^T W.
void RowCode::invert() {
  root_.resize(factor_.size());
  inverse_.resize(factor_.size());
  kernels().factor.invert_root(factor_.data(), d, leading, root_.data());
  kernels().small.triangular_gram(root_.data(), d, leading, inverse_.data());
}

void RowCode::inverse(double* packed) {
  invert();
  for (int i = 0; i < d; ++i) packed = std::copy_n(inverse_.data() + i * leading, i + 1, packed);
}

// |U^-T|^2.
double RowCode::inverse_trace() {
  root_.resize(factor_.size());
  kernels().factor.invert_root(factor_.data(), d, leading, root_.data());
  return kernels().meg.dot(root_.data(), root_.data(), static_cast<Offset>(root_.size()));
}

}  // namespace lacunar
