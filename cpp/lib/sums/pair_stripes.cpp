#include <algorithm>
#include <numeric>

#include "lacunar/parallel/parallel.hpp"
#include "lacunar/sums/pair_sums.hpp"

namespace lacunar {
namespace {

constexpr double kScattering = 4;  // products of vectors that take as long as one scattered sum
constexpr Offset kSample = 1024;   // rows that tell how work falls on the rows of the tables

// Work (n_cols) on every row of the tables in some of the rows, evenly spaced, times what these stand for.
template <class T>
std::vector<double> work_by_column(const Rows<T>& rows, const PairTables& out) {
  const Offset step = std::max<Offset>(rows.n_rows / kSample, 1);
  const double tables = 1 + (out.count != nullptr), others = out.cross != nullptr;
  std::vector<double> work(static_cast<std::size_t>(rows.n_cols), 0);
  for (Offset i = 0; i < rows.n_rows; i += step) {
    const Offset begin = rows.offsets[i], end = rows.offsets[i + 1];
    for (Offset q = begin; q < end; ++q)
      work[static_cast<std::size_t>(rows.indices[q])] +=
          static_cast<double>(step) *
          (tables * static_cast<double>(end - q) + others * static_cast<double>(end - begin));
  }
  return work;
}

}  // namespace

template <class T>
std::vector<Offset> stripe_starts(const Rows<T>& rows, Offset height, const PairTables& out, int n_threads) {
  std::vector<Offset> starts;
  starts.reserve(static_cast<std::size_t>(rows.n_cols / height + n_threads + 2));
  for (Offset at = 0; at < rows.n_cols; at += height) starts.push_back(at);
  starts.push_back(rows.n_cols);
  if (n_threads < 2 || starts.size() != 2) return starts;
  const std::vector<double> work = work_by_column(rows, out);
  const double whole = std::accumulate(work.begin(), work.end(), 0.0);
  const auto stripes = static_cast<std::size_t>(threads_worth(n_threads, kScattering * whole));
  double sum = 0;
  for (Offset k = 0; k < rows.n_cols; ++k) {
    const std::size_t n_stripes = starts.size() - 1;
    if (n_stripes < stripes && sum * static_cast<double>(stripes) >= whole * static_cast<double>(n_stripes))
      starts.insert(starts.end() - 1, k);
    sum += work[static_cast<std::size_t>(k)];
  }
  return starts;
}

template std::vector<Offset> stripe_starts(const Rows<float>&, Offset, const PairTables&, int);
template std::vector<Offset> stripe_starts(const Rows<double>&, Offset, const PairTables&, int);

}  // namespace lacunar
