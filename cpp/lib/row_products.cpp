#include "lacunar/row_products.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/observed.hpp"
#include "lacunar/parallel.hpp"
#include "lacunar/row_parts.hpp"

namespace lacunar {
namespace {

constexpr int kLargestBlock = 8;  // vectors whose running sums stay in registers
constexpr Offset kMostParts = 16;
constexpr Offset kEntriesAColumn = 16;           // of a part
constexpr Offset kFewColumns = 2;                // of b, for which a panel would be mostly padding
constexpr Offset kRowsATask = 96;                // share the panels of b: a multiple of every tile
constexpr Offset kProductsForThreads = 1 << 20;  // that are worth waking threads for
constexpr Offset kEntriesAtOnce = 1 << 20, kProductsAtOnce = 1 << 28;  // between two looks for an interrupt

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
void add_part(const Rows<T>& rows, Offset begin, Offset end, const double* v, int width, double* out,
              InterruptCheck& check) {
  for (int first = 0; first < width; first += kLargestBlock) {
    const int block = std::min(width - first, kLargestBlock);
    for (Offset row = begin; row < end; check.look()) {
      const Offset stop = row_behind(rows, row, end, kEntriesAtOnce);
      add_rows_of<T>(block)(rows, row, stop, v + first, width, out + first);
      row = stop;
    }
  }
}

// b (depth, width) as panels [panel][depth][columns], padded with zeros.
std::vector<double> panels_of(const double* b, Offset depth, Offset width, Offset columns) {
  const Offset n = (width + columns - 1) / columns;
  std::vector<double> made(static_cast<std::size_t>(n * depth * columns), 0.0);
  for (Offset panel = 0; panel < n; ++panel) {
    const Offset from = panel * columns, wide = std::min(columns, width - from);
    for (Offset k = 0; k < depth; ++k)
      std::copy_n(b + k * width + from, wide, made.data() + (panel * depth + k) * columns);
  }
  return made;
}

}  // namespace

template <class T>
void row_product(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out, int n_threads) {
  const auto& product = kernels_of<T>().product;
  const bool few = width <= kFewColumns;  // decided by b alone
  const auto laid = panels_of(b, depth, width, few ? 1 : product.panel);
  const auto multiply = few ? product.dots : product.panels;
  const Offset at_once = std::clamp<Offset>(kProductsAtOnce / std::max<Offset>(depth * width, 1), 1, kRowsATask);
  const int threads = n * depth * width < kProductsForThreads ? 1 : n_threads;
  parallel_tasks(threads, (n + kRowsATask - 1) / kRowsATask, [&](Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kRowsATask, n);
    for (Offset row = task * kRowsATask; row < last; row += at_once, check.look())
      multiply(a + row * depth, std::min(at_once, last - row), depth, laid.data(), width, out + row * width);
  });
}

template void row_product(const float*, Offset, Offset, const double*, Offset, double*, int);
template void row_product(const double*, Offset, Offset, const double*, Offset, double*, int);

template <class T>
void column_gram_product(const Rows<T>& rows, const double* v, int width, double* out, int n_threads) {
  assert(well_ordered(rows));
  const Offset size = rows.n_cols * width;
  const Offset n_parts = part_count(rows, kEntriesAColumn, kMostParts);
  std::vector<double> others(static_cast<std::size_t>((n_parts - 1) * size), 0.0);
  std::fill(out, out + size, 0.0);
  parallel_tasks(n_threads, n_parts, [&](Offset part, InterruptCheck& check) {
    double* sums = part == 0 ? out : others.data() + (part - 1) * size;
    add_part(rows, part_start(rows, part, n_parts), part_start(rows, part + 1, n_parts), v, width, sums, check);
  });
  add_parts(others.data(), n_parts, size, out);
}

template void column_gram_product(const Rows<float>&, const double*, int, double*, int);
template void column_gram_product(const Rows<double>&, const double*, int, double*, int);

}  // namespace lacunar
