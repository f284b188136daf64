#include "lacunar/pair_sums.hpp"

#include <algorithm>
#include <vector>

#include "lacunar/parallel.hpp"

namespace lacunar {
namespace {

// One row of a table, for entry `at` of a row with entries (columns, z) of `size`.
void add_pairs(const Index* columns, const double* z, Offset at, Offset size, Offset n_cols, const PairTables& out) {
  const double own = z[at];
  const Offset start = columns[at] * n_cols;
  double* product = out.product + start;
  for (Offset q = at; q < size; ++q) product[columns[q]] += own * z[q];
  if (Offset* count = out.count ? out.count + start : nullptr)
    for (Offset q = at; q < size; ++q) ++count[columns[q]];
  if (double* cross = out.cross ? out.cross + start : nullptr)
    for (Offset q = 0; q < size; ++q) cross[columns[q]] += own;
}

template <class T>
void add_stripe(const Rows<T>& rows, const double* shift, Offset first, Offset last, const PairTables& out) {
  std::vector<double> z;
  for (Offset i = 0; i < rows.n_rows; ++i) {
    const Index* columns = rows.indices + rows.offsets[i];
    const T* values = rows.values + rows.offsets[i];
    const Offset size = rows.offsets[i + 1] - rows.offsets[i];
    const Offset from = std::lower_bound(columns, columns + size, first) - columns;
    if (from == size || columns[from] >= last) continue;
    z.resize(static_cast<std::size_t>(size));
    for (Offset q = from; q < size; ++q)
      z[static_cast<std::size_t>(q)] = static_cast<double>(values[q]) - shift[columns[q]];
    for (Offset at = from; at < size && columns[at] < last; ++at) add_pairs(columns, z.data(), at, size, rows.n_cols, out);
  }
}

}  // namespace

template <class T>
void column_pair_sums(const Rows<T>& rows, const double* shift, Offset stripe, const PairTables& out, int n_threads) {
  const Offset height = std::max<Offset>(stripe, 1);
  parallel_tasks(n_threads, (rows.n_cols + height - 1) / height, [&](int, Offset task) {
    add_stripe(rows, shift, task * height, std::min((task + 1) * height, rows.n_cols), out);
  });
}

template void column_pair_sums(const Rows<float>&, const double*, Offset, const PairTables&, int);
template void column_pair_sums(const Rows<double>&, const double*, Offset, const PairTables&, int);

}  // namespace lacunar
