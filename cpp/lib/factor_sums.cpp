#include "lacunar/factor_sums.hpp"

#include <algorithm>
#include <cassert>
#include <atomic>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/observed.hpp"
#include "lacunar/parallel.hpp"
#include "lacunar/row_parts.hpp"
#include "lacunar/small_dense.hpp"

namespace lacunar {
namespace {

constexpr Offset kEntriesAColumn = 64;  // of a part
constexpr Offset kMostParts = 8;

constexpr Offset packed(int k) { return static_cast<Offset>(k) * (k + 1) / 2; }

// One part of the rows: its posterior codes, and what they add to the sums.
class Part {
 public:
  Part(const double* model, int k, double noise)
      : model_(model),
        k_(k),
        leading_(padded(k)),
        noise_(noise),
        gram_(static_cast<std::size_t>(packed(k))),
        right_(static_cast<std::size_t>(k)),
        factor_(static_cast<std::size_t>(leading_ * leading_)),
        root_(factor_),
        inverse_(factor_),
        second_(static_cast<std::size_t>(packed(k + 1))),
        first_(static_cast<std::size_t>(k + 1)) {}

  // False when a ridge had to rescue the row.
  template <class T>
  bool add(const Index* columns, const T* values, Offset size, double* sums, double* moment) {
    gather(columns, values, size);
    const bool sound = solve();
    moments();
    const Offset width = factor_sums_width(k_), pairs = packed(k_ + 1);
    for (Offset p = 0; p < size; ++p) {
      double* of_column = sums + columns[p] * width;
      add_(second_.data(), 1.0, of_column, pairs);
      add_(first_.data(), static_cast<double>(values[p]), of_column + pairs, k_ + 1);
    }
    for (Offset q = 0; q < packed(k_); ++q) moment[q] += second_[static_cast<std::size_t>(q)];
    return sound;
  }

 private:
  template <class T>
  void gather(const Index* columns, const T* values, Offset size) {
    std::fill(gram_.begin(), gram_.end(), 0.0);
    std::fill(right_.begin(), right_.end(), 0.0);
    for (Offset p = 0; p < size; ++p) {
      const double* of_column = model_ + columns[p] * factor_width(k_);
      const double* v = of_column + packed(k_);
      add_(of_column, 1.0, gram_.data(), packed(k_));
      add_(v, static_cast<double>(values[p]) - v[k_], right_.data(), k_);
    }
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
    kernels().small.triangular_gram(root_.data(), k_, leading_, inverse_.data());
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
    std::copy(first_.begin(), first_.end(), to);
  }

  const double* model_;
  int k_, leading_;
  double noise_;
  std::vector<double> gram_, right_;             // of the row, gram packed
  std::vector<double> factor_, root_, inverse_;  // (leading, leading)
  std::vector<double> second_, first_;
  AddScaled<double> add_ = kernels().f64.add_scaled;
};

}  // namespace

template <class T>
Offset factor_sums(const Rows<T>& rows, const double* model, int k, double noise, double* sums, double* moment,
                   int n_threads) {
  assert(well_ordered(rows));
  const Offset size = rows.n_cols * factor_sums_width(k), n_parts = part_count(rows, kEntriesAColumn, kMostParts);
  std::vector<double> others(static_cast<std::size_t>((n_parts - 1) * size), 0.0);
  std::vector<double> moments(static_cast<std::size_t>(n_parts * packed(k)), 0.0);
  std::atomic<Offset> rescued{0};
  const auto work = [&](Part& part, Offset task, InterruptCheck& check) {
    double* to = task == 0 ? sums : others.data() + (task - 1) * size;
    const Offset last = part_start(rows, task + 1, n_parts);
    for (Offset i = part_start(rows, task, n_parts); i < last; ++i) {
      const Offset from = rows.offsets[i], entries = rows.offsets[i + 1] - from;
      if (entries == 0) continue;
      if (!part.add(rows.indices + from, rows.values + from, entries, to, moments.data() + task * packed(k))) ++rescued;
      check.after((entries + k) * k * k);
    }
  };
  parallel_tasks(n_threads, n_parts, [&] { return Part(model, k, noise); }, work);
  add_parts(others.data(), n_parts, size, sums);
  add_parts(moments.data(), n_parts + 1, packed(k), moment);
  return rescued;
}

template Offset factor_sums(const Rows<float>&, const double*, int, double, double*, double*, int);
template Offset factor_sums(const Rows<double>&, const double*, int, double, double*, double*, int);

}  // namespace lacunar
