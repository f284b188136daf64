// Two ways over the pairs of rows, block by block: dense register tiles, and sparse rows against blocks of columns.
#include <algorithm>
#include <memory>

#include "lacunar/gram/karma_gram.hpp"
#include "lacunar/parallel/lines.hpp"
#include "lacunar/parallel/parallel.hpp"

namespace lacunar {

namespace {

constexpr Offset kBlock = 192;                // rows and columns of a block: a multiple of every tile
constexpr double kFilling = 8;                // products of vectors in the time of a new cell of a panel
constexpr Offset kPieceOperations = 1 << 28;  // of a block, between two looks for an interrupt: tens of milliseconds

// Rows of a table as zero-filled panels [panel][d][width], and their masks as words [panel][words][width]. A task has
// the panels of a block to itself.
template <class T>
struct Panels {
  std::unique_ptr<T[]> values;
  std::unique_ptr<std::uint32_t[]> bits;

  Panels(const Rows<T>& rows, Offset width, Offset words, int n_threads) {
    const Offset blocks = (rows.n_rows + kBlock - 1) / kBlock, d = rows.n_cols;
    values = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(blocks * kBlock * d));
    bits = std::make_unique_for_overwrite<std::uint32_t[]>(static_cast<std::size_t>(blocks * kBlock * words));
    const double operations = kFilling * static_cast<double>(blocks * kBlock) * static_cast<double>(d);
    parallel_tasks(threads_worth(n_threads, operations), blocks, [&](Offset block, InterruptCheck& check) {
      const Offset first = block * kBlock, last = std::min(first + kBlock, rows.n_rows);
      std::fill_n(values.get() + first * d, kBlock * d, T{0});
      std::fill_n(bits.get() + first * words, kBlock * words, 0u);
      check.after(kBlock * d);
      for (Offset i = first; i < last; ++i) {
        const Offset panel = i / width, lane = i % width;
        check.after(8 * (rows.offsets[i + 1] - rows.offsets[i]));
        for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p) {
          const Offset k = rows.indices[p];
          values[static_cast<std::size_t>((panel * d + k) * width + lane)] = rows.values[p];
          bits[static_cast<std::size_t>((panel * words + k / 32) * width + lane)] |= 1u << (k % 32);
        }
      }
    });
  }
};

// Block pairs (bi, bj), bj >= bi when symmetric, in an order that keeps bi for a while.
std::vector<std::pair<Offset, Offset>> block_pairs(Offset n, Offset m, bool symmetric) {
  std::vector<std::pair<Offset, Offset>> pairs;
  for (Offset i = 0; i < n; i += kBlock)
    for (Offset j = symmetric ? i : 0; j < m; j += kBlock) pairs.emplace_back(i, j);
  return pairs;
}

// Of one thread: sums and counts of a block, and of a path that needs them a block of columns, zero between tasks.
template <class T>
struct Workspace {
  std::vector<T> s;
  std::vector<std::int32_t> n;
  GramSink<T> sink;
  LineVector<T> values;
  LineVector<std::uint8_t> seen;

  Workspace(const GramTask<T>& task, Offset rows, Offset cols, Offset entries)
      : s(static_cast<std::size_t>(rows * cols)),
        n(s.size()),
        sink(task, rows, cols),
        values(static_cast<std::size_t>(entries)),
        seen(values.size()) {}
};

Offset up(Offset size, Offset tile) { return (size + tile - 1) / tile * tile; }

}  // namespace

template <class T>
void gram_dense(const GramTask<T>& task, int n_threads) {
  const auto& gram = kernels_of<T>().gram;
  const Offset d = task.x.n_cols, words = (d + 31) / 32, n_x = task.x.n_rows, n_y = task.y.n_rows;
  const Panels<T> a(task.x, gram.tile_rows, words, n_threads), b(task.y, gram.tile_cols, words, n_threads);
  const auto pairs = block_pairs(n_x, n_y, task.symmetric);
  const Offset height = std::min(kBlock, up(n_x, gram.tile_rows)), width = std::min(kBlock, up(n_y, gram.tile_cols));
  // Columns between two looks for an interrupt: fewer than a block for rows of tens of thousands.
  const Offset piece = std::clamp(up(kPieceOperations / (height * std::max<Offset>(d, 1)), gram.tile_cols),
                                  static_cast<Offset>(gram.tile_cols), width);
  const auto work = [&](Workspace<T>& space, Offset at, InterruptCheck& check) {
    const auto [i, j] = pairs[static_cast<std::size_t>(at)];
    const Offset rows = std::min(kBlock, n_x - i), cols = std::min(kBlock, n_y - j), whole = up(cols, gram.tile_cols);
    for (Offset c = 0; c < whole; c += piece, check.look())
      gram.dense_block(a.values.get() + i * d, b.values.get() + (j + c) * d, a.bits.get() + i * words,
                       b.bits.get() + (j + c) * words, d, words, up(rows, gram.tile_rows), std::min(piece, whole - c),
                       space.s.data() + c, space.n.data() + c, width);
    space.sink.put(space.s.data(), space.n.data(), width, i, rows, j, cols);
  };
  const double operations = static_cast<double>(pairs.size()) * static_cast<double>(height * width * (d + 8));
  parallel_tasks(
      threads_worth(n_threads, operations), static_cast<Offset>(pairs.size()),
      [&] { return Workspace<T>(task, height, width, 0); }, work);
}

template <class T>
void gram_spmm(const GramTask<T>& task, int n_threads) {
  const auto& gram = kernels_of<T>().gram;
  const Offset lanes = gram.lanes, n_x = task.x.n_rows, n_y = task.y.n_rows, height = std::min(kBlock, n_x);
  const auto work = [&](Workspace<T>& space, Offset at, InterruptCheck& check) {
    const Offset j = at * lanes, cols = std::min(lanes, n_y - j);
    const auto fill = [&](bool with) {  // the block's entries are put in, and taken out again: the rest stays zero
      for (Offset lane = 0; lane < cols; ++lane)
        for (Offset p = task.y.offsets[j + lane]; p < task.y.offsets[j + lane + 1]; ++p) {
          const auto slot = static_cast<std::size_t>(task.y.indices[p] * lanes + lane);
          space.values[slot] = with ? task.y.values[p] : T{0};
          space.seen[slot] = with;
        }
    };
    fill(true);
    // By symmetry the rows above the block are enough: they are mirrored below it.
    const Offset last = task.symmetric ? j + cols : n_x;
    for (Offset i = 0; i < last; check.look()) {
      const Offset stop = task.symmetric && i < j ? std::min(i + height, j) : std::min(i + height, last);
      gram.sparse_rows(task.x, i, stop, space.values.data(), space.seen.data(), space.s.data(), space.n.data());
      space.sink.put(space.s.data(), space.n.data(), lanes, i, stop - i, j, cols);
      i = stop;
    }
    fill(false);
  };
  const double operations = static_cast<double>(task.x.n_observed() + 8 * n_x) * static_cast<double>(n_y);
  parallel_tasks(
      threads_worth(n_threads, operations), (n_y + lanes - 1) / lanes,
      [&] { return Workspace<T>(task, height, lanes, lanes * task.x.n_cols); }, work);
}

#define LACUNAR_INSTANTIATE(T)                       \
  template void gram_dense(const GramTask<T>&, int); \
  template void gram_spmm(const GramTask<T>&, int);
LACUNAR_INSTANTIATE(float)
LACUNAR_INSTANTIATE(double)
#undef LACUNAR_INSTANTIATE

}  // namespace lacunar
