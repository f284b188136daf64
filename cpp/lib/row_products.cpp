#include "lacunar/row_products.hpp"

#include <algorithm>
#include <vector>

#include "lacunar/parallel.hpp"
#include "lacunar/row_parts.hpp"

namespace lacunar {
namespace {

constexpr int kLargestBlock = 8;    // vectors whose running sums stay in registers
constexpr Offset kMostParts = 16;
constexpr Offset kEntriesAColumn = 16;  // of a part

// W columns of v and out, whose rows lie `width` apart.
template <int W, class T>
void add_rows(const Rows<T>& rows, Offset begin, Offset end, const double* v, Offset width, double* out) {
  for (Offset i = begin; i < end; ++i) {
    const Offset from = rows.offsets[i], to = rows.offsets[i + 1];
    double t[W] = {};
    for (Offset p = from; p < to; ++p) {
      const double x = static_cast<double>(rows.values[p]);
      const double* column = v + rows.indices[p] * width;
      for (int w = 0; w < W; ++w) t[w] += x * column[w];
    }
    for (Offset p = from; p < to; ++p) {
      const double x = static_cast<double>(rows.values[p]);
      double* sum = out + rows.indices[p] * width;
      for (int w = 0; w < W; ++w) sum[w] += x * t[w];
    }
  }
}

template <class T>
using AddRows = void (*)(const Rows<T>&, Offset, Offset, const double*, Offset, double*);

template <class T>
AddRows<T> add_rows_of(int block) {
  static constexpr AddRows<T> table[kLargestBlock] = {add_rows<1, T>, add_rows<2, T>, add_rows<3, T>, add_rows<4, T>,
                                                      add_rows<5, T>, add_rows<6, T>, add_rows<7, T>, add_rows<8, T>};
  return table[block - 1];
}

template <class T>
void add_part(const Rows<T>& rows, Offset begin, Offset end, const double* v, int width, double* out) {
  for (int first = 0; first < width; first += kLargestBlock) {
    const int block = std::min(width - first, kLargestBlock);
    add_rows_of<T>(block)(rows, begin, end, v + first, width, out + first);
  }
}

}  // namespace

template <class T>
void column_gram_product(const Rows<T>& rows, const double* v, int width, double* out, int n_threads) {
  const Offset size = rows.n_cols * width;
  const Offset n_parts = part_count(rows, kEntriesAColumn, kMostParts);
  std::vector<double> others(static_cast<std::size_t>((n_parts - 1) * size), 0.0);
  std::fill(out, out + size, 0.0);
  parallel_tasks(n_threads, n_parts, [&](int, Offset part) {
    double* sums = part == 0 ? out : others.data() + (part - 1) * size;
    add_part(rows, part_start(rows, part, n_parts), part_start(rows, part + 1, n_parts), v, width, sums);
  });
  add_parts(others.data(), n_parts, size, out);
}

template void column_gram_product(const Rows<float>&, const double*, int, double*, int);
template void column_gram_product(const Rows<double>&, const double*, int, double*, int);

}  // namespace lacunar
