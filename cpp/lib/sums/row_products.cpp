#include "lacunar/sums/row_products.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/observed/row_parts.hpp"
#include "lacunar/parallel/lines.hpp"
#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr int kMostLanes = 8;  // of a kernel
constexpr Offset kMostParts = 16;
constexpr Offset kEntriesAColumn = 16;           // of a part
constexpr Offset kFewColumns = 2;                // of b, for which a panel would be mostly padding
constexpr Offset kRowsATask = 96;                // share the panels of b: a multiple of every tile
constexpr Offset kProductsForThreads = 1 << 20;  // that are worth waking threads for
constexpr Offset kEntriesAtOnce = 1 << 20, kProductsAtOnce = 1 << 28;  // between two looks for an interrupt

// b (depth, width) as panels [panel][depth][columns], padded with zeros.
std::vector<double> panels_of(const double* b, Offset depth, Offset width, Offset columns) {
  const Offset n = (width + columns - 1) / columns;
  std::vector<double> panels(static_cast<std::size_t>(n * depth * columns), 0.0);
  for (Offset panel = 0; panel < n; ++panel) {
    const Offset from = panel * columns, wide = std::min(columns, width - from);
    for (Offset k = 0; k < depth; ++k)
      std::copy_n(b + k * width + from, wide, panels.data() + (panel * depth + k) * columns);
  }
  return panels;
}

}  // namespace

template <class T>
void row_product(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out, int n_threads) {
  const auto& product = kernels_of<T>().product;
  const bool narrow = width <= kFewColumns;  // decided by b alone
  const auto laid = panels_of(b, depth, width, narrow ? 1 : product.panel);
  const auto multiply = narrow ? product.dots : product.panels;
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
  const Offset n_parts = part_count(rows, kEntriesAColumn, kMostParts);
  for (int first = 0; first < width;) {  // as many vectors at a time as the lanes of a kernel
    const int wide = std::min(width - first, kMostLanes), lanes = static_cast<int>(std::bit_ceil(unsigned(wide)));
    const Offset size = rows.n_cols * lanes;
    LineVector<double> block(static_cast<std::size_t>(size), 0.0);
    const auto sums = line_array(static_cast<std::size_t>(n_parts * size));
    for (Offset j = 0; j < rows.n_cols; ++j) std::copy_n(v + j * width + first, wide, block.data() + j * lanes);
    parallel_tasks(n_threads, n_parts, [&](Offset part, InterruptCheck& check) {
      const Offset end = part_start(rows, part + 1, n_parts);
      double* const own = sums.get() + part * size;
      std::fill_n(own, size, 0.0);
      for (Offset row = part_start(rows, part, n_parts); row < end; check.look()) {
        const Offset stop = row_behind(rows, row, end, kEntriesAtOnce);
        kernels_of<T>().product.gram_rows(rows, row, stop, block.data(), lanes, own);
        row = stop;
      }
    });
    add_parts(sums.get() + size, n_parts, size, sums.get(), n_threads);
    for (Offset j = 0; j < rows.n_cols; ++j) std::copy_n(sums.get() + j * lanes, wide, out + j * width + first);
    first += wide;
  }
}

template void column_gram_product(const Rows<float>&, const double*, int, double*, int);
template void column_gram_product(const Rows<double>&, const double*, int, double*, int);

}  // namespace lacunar
