#include "lacunar/sums/factor_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/observed/row_parts.hpp"
#include "lacunar/parallel/lines.hpp"
#include "lacunar/parallel/parallel.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

constexpr Offset kEntriesAColumn = 64;  // of a part
constexpr Offset kMostParts = 8;

constexpr Offset packed(int k) { return static_cast<Offset>(k) * (k + 1) / 2; }

// Rows of both tables begin at a cache line: what belongs to pairs of codes, then what belongs to codes and 1.
struct Layout {
  int pairs, codes;  // padded
  Offset width() const { return pairs + codes; }
};

Layout model_layout(int k) { return {padded(static_cast<int>(packed(k))), padded(k + 1)}; }
Layout sums_layout(int k) { return {padded(static_cast<int>(packed(k + 1))), padded(k + 1)}; }

// The model in that layout.
std::unique_ptr<double[], LineDeleter> laid_out(const double* model, Offset n_cols, int k) {
  const Layout layout = model_layout(k);
  const auto pairs = static_cast<std::size_t>(packed(k));
  auto padded = line_array(static_cast<std::size_t>(n_cols * layout.width()));
  std::fill_n(padded.get(), n_cols * layout.width(), 0.0);
  for (Offset j = 0; j < n_cols; ++j, model += factor_width(k)) {
    std::copy_n(model, pairs, padded.get() + j * layout.width());
    std::copy_n(model + pairs, k + 1, padded.get() + j * layout.width() + layout.pairs);
  }
  return padded;
}

// One part of the rows: its posterior codes, and what they add to the sums.
class Part {
 public:
  Part(const double* model, int k, double noise)
      : model_(model),
        k_(k),
        leading_(padded(k)),
        noise_(noise),
        gram_(static_cast<std::size_t>(from_.pairs)),
        right_(static_cast<std::size_t>(from_.codes)),
        factor_(static_cast<std::size_t>(leading_ * leading_)),
        root_(factor_),
        inverse_(factor_),
        second_(static_cast<std::size_t>(to_.pairs)),
        first_(static_cast<std::size_t>(to_.codes)) {}

  // False when a ridge had to rescue the row.
  template <class T>
  bool add(const Index* columns, const T* values, Offset size, double* sums, double* moment) {
    gather(columns, values, size);
    const bool sound = solve();
    moments();
    small_.add_to_rows(sums, to_.width(), columns, nullptr, size, to_.pairs, second_.data());
    small_.add_to_rows(sums + to_.pairs, to_.width(), columns, values_.data(), size, to_.codes, first_.data());
    for (Offset q = 0; q < packed(k_); ++q) moment[q] += second_[static_cast<std::size_t>(q)];
    return sound;
  }

 private:
  template <class T>
  void gather(const Index* columns, const T* values, Offset size) {
    values_.assign(values, values + size);
    left_.resize(values_.size());
    const double *codes = model_ + from_.pairs, *mean = codes + k_;
    for (Offset p = 0; p < size; ++p) {
      const auto at = static_cast<std::size_t>(p);
      left_[at] = values_[at] - mean[columns[p] * from_.width()];
    }
    small_.sum_rows(model_, from_.width(), columns, nullptr, size, from_.pairs, gram_.data());
    small_.sum_rows(codes, from_.width(), columns, left_.data(), size, from_.codes, right_.data());
  }

  // inverse = (gram + noise I)^-1.
  bool solve() {
    const double mean = unpack(noise_) / k_;
    const bool sound = factorise(kSingular * mean);
    if (!sound) {
      unpack(std::max(noise_, kRescue * (mean > 0 ? mean : 1)));
      factorise(0.0);
    }
    kernels().factor.invert_root(factor_.data(), k_, leading_, root_.data());
    small_.triangular_gram(root_.data(), k_, leading_, inverse_.data());
    return sound;
  }

  bool factorise(double smallest) { return kernels().factor.factorise(factor_.data(), k_, leading_, smallest); }

  // The upper triangle of factor = gram + ridge I, unpacked; the trace of gram.
  double unpack(double ridge) {
    const double* from = gram_.data();
    double trace = 0;
    std::fill(factor_.begin(), factor_.end(), 0.0);  // a row of overflows leaves NaN in the padding
    for (int i = 0; i < k_; ++i) {
      double* column = factor_.data() + i;
      for (int j = 0; j <= i; ++j) column[j * leading_] = *from++;
      trace += column[i * leading_];
      column[i * leading_] += ridge;
    }
    return trace;
  }

  // first = E u and second = E u u^T, by rows of its lower triangle, the last of which is first.
  void moments() {
    for (int i = 0; i < k_; ++i)
      first_[static_cast<std::size_t>(i)] = dot(inverse_.data() + i * leading_, right_.data(), k_);
    first_[static_cast<std::size_t>(k_)] = 1.0;
    double* to = second_.data();
    for (int i = 0; i < k_; ++i) {
      const double* row = inverse_.data() + i * leading_;
      const double own = first_[static_cast<std::size_t>(i)];
      for (int j = 0; j <= i; ++j) *to++ = own * first_[static_cast<std::size_t>(j)] + noise_ * row[j];
    }
    std::copy_n(first_.begin(), k_ + 1, to);
  }

  const double* model_;
  int k_, leading_;
  double noise_;
  Layout from_ = model_layout(k_), to_ = sums_layout(k_);
  std::vector<double> values_, left_;            // of the row, and less the means
  std::vector<double> gram_, right_;             // of the row, gram packed
  std::vector<double> factor_, root_, inverse_;  // (leading, leading)
  std::vector<double> second_, first_;
  const SmallKernels& small_ = kernels().small;
};

}  // namespace

template <class T>
Offset factor_sums(const Rows<T>& rows, const double* model, int k, double noise, double* sums, double* moment,
                   int n_threads) {
  assert(well_ordered(rows));
  const Layout layout = sums_layout(k);
  const Offset size = rows.n_cols * layout.width(), n_parts = part_count(rows, kEntriesAColumn, kMostParts);
  const auto laid = laid_out(model, rows.n_cols, k);
  const auto tables = line_array(static_cast<std::size_t>(n_parts * size));
  std::vector<double> moments(static_cast<std::size_t>(n_parts * packed(k)), 0.0);
  std::atomic<Offset> rescued{0};
  const auto work = [&](Part& part, Offset task, InterruptCheck& check) {
    double* to = tables.get() + task * size;
    std::fill_n(to, size, 0.0);
    const Offset last = part_start(rows, task + 1, n_parts);
    for (Offset i = part_start(rows, task, n_parts); i < last; ++i) {
      const Offset from = rows.offsets[i], entries = rows.offsets[i + 1] - from;
      if (entries == 0) continue;
      if (!part.add(rows.indices + from, rows.values + from, entries, to, moments.data() + task * packed(k))) ++rescued;
      check.after((entries + k) * k * k);
    }
  };
  parallel_tasks(n_threads, n_parts, [&] { return Part(laid.get(), k, noise); }, work);
  add_parts(tables.get() + size, n_parts, size, tables.get(), n_threads);
  for (Offset j = 0; j < rows.n_cols; ++j) {
    const double* from = tables.get() + j * layout.width();
    double* to = sums + j * factor_sums_width(k);
    for (Offset q = 0; q < packed(k + 1); ++q) to[q] += from[q];
    for (Offset q = 0; q <= k; ++q) to[packed(k + 1) + q] += from[layout.pairs + q];
  }
  add_parts(moments.data(), n_parts + 1, packed(k), moment, 1);
  return rescued;
}

template Offset factor_sums(const Rows<float>&, const double*, int, double, double*, double*, int);
template Offset factor_sums(const Rows<double>&, const double*, int, double, double*, double*, int);

}  // namespace lacunar
