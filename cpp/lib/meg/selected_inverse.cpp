#include "lacunar/meg/selected_inverse.hpp"

#include <algorithm>
#include <vector>

#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {
namespace {

// The columns of the inverse done so far, on the pattern of the factor.
struct Done {
  const Rows<double>& lower;
  const double* tail;
  Offset start;  // of the dense tail
  Offset k;
  double* diagonal;
  std::vector<double> below;  // as lower.values
  std::vector<Index> place;   // row -> its place among the rows of the current column, or -1
};

// product[a] = sum_b Z[row a, row b] l[b] over rows of the current column that lie in the tail: places first..count-1.
void add_tail(const Done& z, const Index* row, const double* l, Offset first, Offset count, double* product) {
  for (Offset a = first; a < count; ++a) {
    const double* line = z.tail + (row[a] - z.start) * z.k - z.start;
    double sum = 0.0;
    for (Offset b = first; b < count; ++b) sum += line[row[b]] * l[b];
    product[a] += sum;
  }
}

// The same for row b before the tail: its own column holds Z at all later rows of the current one.
void add_column(const Done& z, Offset b, const Index* row, const double* l, double* product) {
  const Index column = row[b];
  double across = z.diagonal[column] * l[b];
  for (Offset p = z.lower.offsets[column]; p < z.lower.offsets[column + 1]; ++p) {
    const Index a = z.place[static_cast<std::size_t>(z.lower.indices[p])];
    if (a < 0) continue;
    const double entry = z.below[static_cast<std::size_t>(p)];
    product[a] += entry * l[b];
    across += entry * l[a];
  }
  product[b] += across;
}

void one_column(Done& z, Offset j, double pivot, std::vector<double>& product) {
  const Offset begin = z.lower.offsets[j], count = z.lower.offsets[j + 1] - begin;
  const Index* row = z.lower.indices + begin;
  const double* l = z.lower.values + begin;
  std::fill_n(product.begin(), count, 0.0);
  for (Offset a = 0; a < count; ++a) z.place[static_cast<std::size_t>(row[a])] = static_cast<Index>(a);
  const Offset first = std::lower_bound(row, row + count, static_cast<Index>(z.start)) - row;
  for (Offset b = 0; b < first; ++b) add_column(z, b, row, l, product.data());
  add_tail(z, row, l, first, count, product.data());
  double own = 1.0 / pivot;
  for (Offset a = 0; a < count; ++a) {
    z.place[static_cast<std::size_t>(row[a])] = -1;
    z.below[static_cast<std::size_t>(begin + a)] = -product[static_cast<std::size_t>(a)];
    own += l[a] * product[static_cast<std::size_t>(a)];
  }
  z.diagonal[j] = own;
}

// Of one column: what its rows' columns hold, and its share of the tail.
Offset operations_of(const Rows<double>& lower, Offset j, Offset start) {
  Offset total = 8, in_tail = 0;
  for (Offset p = lower.offsets[j]; p < lower.offsets[j + 1]; ++p) {
    const Index row = lower.indices[p];
    if (row < start)
      total += lower.offsets[row + 1] - lower.offsets[row] + 1;
    else
      ++in_tail;
  }
  return total + in_tail * in_tail;
}

}  // namespace

void selected_inverse(const Rows<double>& lower, const double* pivots, const double* tail, Offset k,
                      double* inverse_diagonal) {
  const Offset n = lower.n_rows, start = n - k;
  Offset widest = 0;
  for (Offset j = 0; j < start; ++j) widest = std::max(widest, lower.offsets[j + 1] - lower.offsets[j]);
  Done z{lower,
         tail,
         start,
         k,
         inverse_diagonal,
         std::vector<double>(static_cast<std::size_t>(lower.offsets[start])),
         std::vector<Index>(static_cast<std::size_t>(n), -1)};
  std::vector<double> product(static_cast<std::size_t>(widest));
  for (Offset a = 0; a < k; ++a) inverse_diagonal[start + a] = tail[a * k + a];
  InterruptCheck check;
  for (Offset j = start - 1; j >= 0; --j) {
    one_column(z, j, pivots[j], product);
    check.after(operations_of(lower, j, start));
  }
}

}  // namespace lacunar
