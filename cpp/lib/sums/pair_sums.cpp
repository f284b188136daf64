#include "lacunar/sums/pair_sums.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr int kTogether = 4;  // rows of a table that are added to together: an entry is loaded once for them

// Rows of the tables for the W entries from `at` of a row with entries (columns, z) of `size`.
template <int W>
void add_pairs(const Index* columns, const double* z, Offset at, Offset size, Offset n_cols, const PairTables& out) {
  double own[W];
  Offset start[W];
  for (int w = 0; w < W; ++w) own[w] = z[at + w], start[w] = columns[at + w] * n_cols;
  double* const product = out.product;
  for (int w = 0; w < W; ++w)  // pairs among the W entries
    for (int u = w; u < W; ++u) product[start[w] + columns[at + u]] += own[w] * own[u];
  for (Offset q = at + W; q < size; ++q) {
    const Offset column = columns[q];
    const double other = z[q];
    for (int w = 0; w < W; ++w) product[start[w] + column] += own[w] * other;
  }
  if (Offset* const count = out.count) {
    for (int w = 0; w < W; ++w)
      for (int u = w; u < W; ++u) ++count[start[w] + columns[at + u]];
    for (Offset q = at + W; q < size; ++q)
      for (int w = 0; w < W; ++w) ++count[start[w] + columns[q]];
  }
  if (double* const cross = out.cross)
    for (Offset q = 0; q < size; ++q) {
      const Offset column = columns[q];
      for (int w = 0; w < W; ++w) cross[start[w] + column] += own[w];
    }
}

template <class T>
void add_stripe(const Rows<T>& rows, const double* shift, Offset first, Offset last, const PairTables& out,
                InterruptCheck& check) {
  std::vector<double> z;
  for (Offset i = 0; i < rows.n_rows; ++i) {
    const Index* columns = rows.indices + rows.offsets[i];
    const T* values = rows.values + rows.offsets[i];
    const Offset size = rows.offsets[i + 1] - rows.offsets[i];
    const Offset from = std::lower_bound(columns, columns + size, first) - columns;
    check.after(8);
    if (from == size || columns[from] >= last) continue;
    z.resize(static_cast<std::size_t>(size));
    for (Offset q = from; q < size; ++q)
      z[static_cast<std::size_t>(q)] = static_cast<double>(values[q]) - shift[columns[q]];
    const Offset to = std::lower_bound(columns + from, columns + size, last) - columns;
    Offset at = from;
    for (; at + kTogether <= to; at += kTogether) add_pairs<kTogether>(columns, z.data(), at, size, rows.n_cols, out);
    for (; at < to; ++at) add_pairs<1>(columns, z.data(), at, size, rows.n_cols, out);
    check.after((to - from) * (size - from));
  }
}

constexpr Offset kColumnsATask = 8;

// Row i of the tables, from the rows of the entries of column i.
template <class T>
void add_table_row(const Rows<T>& rows, const ColumnView& columns, const double* z, Offset i, const PairTables& out,
                   InterruptCheck& check) {
  double* product = out.product + i * rows.n_cols;
  Offset* count = out.count ? out.count + i * rows.n_cols : nullptr;
  double* cross = out.cross ? out.cross + i * rows.n_cols : nullptr;
  for (Offset e = columns.offsets[i]; e < columns.offsets[i + 1]; ++e) {
    const Offset at = columns.positions[e], row = columns.rows[e], end = rows.offsets[row + 1];
    const Index* column = rows.indices;
    const double own = z[at];
    for (Offset q = at; q < end; ++q) product[column[q]] += own * z[q];
    if (count)
      for (Offset q = at; q < end; ++q) ++count[column[q]];
    if (cross)
      for (Offset q = rows.offsets[row]; q < end; ++q) cross[column[q]] += own;
    check.after(2 * (end - at));
  }
}

}  // namespace

template <class T>
void column_pair_sums(const Rows<T>& rows, const ColumnView& columns, const double* shift, const PairTables& out,
                      int n_threads) {
  assert(well_ordered(rows));
  std::vector<double> z(static_cast<std::size_t>(rows.n_observed()));
  for (std::size_t p = 0; p < z.size(); ++p) z[p] = static_cast<double>(rows.values[p]) - shift[rows.indices[p]];
  parallel_tasks(n_threads, (rows.n_cols + kColumnsATask - 1) / kColumnsATask, [&](Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kColumnsATask, rows.n_cols);
    for (Offset i = task * kColumnsATask; i < last; ++i) add_table_row(rows, columns, z.data(), i, out, check);
  });
}

template void column_pair_sums(const Rows<float>&, const ColumnView&, const double*, const PairTables&, int);
template void column_pair_sums(const Rows<double>&, const ColumnView&, const double*, const PairTables&, int);

template <class T>
void column_pair_sums(const Rows<T>& rows, const double* shift, Offset stripe, const PairTables& out, int n_threads) {
  assert(well_ordered(rows));
  const std::vector<Offset> starts = stripe_starts(rows, std::max<Offset>(stripe, 1), out, n_threads);
  parallel_tasks(n_threads, static_cast<Offset>(starts.size()) - 1, [&](Offset task, InterruptCheck& check) {
    const Offset* const start = starts.data() + task;
    add_stripe(rows, shift, start[0], start[1], out, check);
  });
}

template void column_pair_sums(const Rows<float>&, const double*, Offset, const PairTables&, int);
template void column_pair_sums(const Rows<double>&, const double*, Offset, const PairTables&, int);

template <class T>
void mirror_upper(T* table, Offset n, int n_threads) {
  constexpr Offset side = 32;  // squares of which two stay in the first cache
  parallel_tasks(n_threads, (n + side - 1) / side, [&](Offset task, InterruptCheck&) {
    const Offset first = task * side, last = std::min(first + side, n);
    for (Offset left = 0; left <= first; left += side)
      for (Offset i = first; i < last; ++i)
        for (Offset j = left; j < std::min(left + side, i); ++j) table[i * n + j] = table[j * n + i];
  });
}

template void mirror_upper(double*, Offset, int);
template void mirror_upper(Offset*, Offset, int);

}  // namespace lacunar
