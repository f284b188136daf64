// Two ways over the pairs of rows, block by block: dense register tiles, and sparse rows against blocks of columns.
#include <algorithm>
#include <memory>

#include "lacunar/karma_gram.hpp"
#include "lacunar/parallel.hpp"

namespace lacunar {

namespace {

constexpr Offset kBlock = 192;  // rows and columns of a block: a multiple of every tile

// Rows of a table as zero-filled panels [panel][d][width], and their masks as words [panel][words][width].
template <class T>
struct Panels {
  std::vector<T> values;
  std::vector<std::uint32_t> bits;

  Panels(const Rows<T>& rows, Offset width, Offset words) {
    const Offset padded = (rows.n_rows + kBlock - 1) / kBlock * kBlock;
    values.resize(static_cast<std::size_t>(padded * rows.n_cols));
    bits.resize(static_cast<std::size_t>(padded * words));
    for (Offset i = 0; i < rows.n_rows; ++i) {
      const Offset panel = i / width, lane = i % width;
      for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p) {
        const Offset k = rows.indices[p];
        values[static_cast<std::size_t>((panel * rows.n_cols + k) * width + lane)] = rows.values[p];
        bits[static_cast<std::size_t>((panel * words + k / 32) * width + lane)] |= 1u << (k % 32);
      }
    }
  }
};

// Block pairs (bi, bj), bj >= bi when symmetric, in an order that keeps bi for a while.
std::vector<std::pair<Offset, Offset>> block_pairs(Offset n, Offset m, bool symmetric) {
  std::vector<std::pair<Offset, Offset>> pairs;
  for (Offset i = 0; i < n; i += kBlock)
    for (Offset j = symmetric ? i : 0; j < m; j += kBlock) pairs.emplace_back(i, j);
  return pairs;
}

template <class T>
struct Workspace {
  std::vector<T> s;
  std::vector<std::int32_t> n;
  GramSink<T> sink;

  Workspace(const GramTask<T>& task, Offset rows, Offset cols)
      : s(static_cast<std::size_t>(rows * cols)), n(static_cast<std::size_t>(rows * cols)), sink(task, rows, cols) {}
};

template <class T>
std::vector<std::unique_ptr<Workspace<T>>> workspaces(const GramTask<T>& task, int n_threads, Offset rows, Offset cols) {
  std::vector<std::unique_ptr<Workspace<T>>> made;
  for (int t = 0; t < std::max(n_threads, 1); ++t) made.push_back(std::make_unique<Workspace<T>>(task, rows, cols));
  return made;
}

}  // namespace

template <class T>
void gram_dense(const GramTask<T>& task, int n_threads) {
  const auto& kernels = gram_kernels<T>();
  const Offset d = task.x.n_cols, words = (d + 31) / 32;
  const Panels<T> a(task.x, kernels.tile_rows, words), b(task.y, kernels.tile_cols, words);
  const auto pairs = block_pairs(task.x.n_rows, task.y.n_rows, task.symmetric);
  const auto spaces = workspaces(task, n_threads, kBlock, kBlock);
  parallel_tasks(n_threads, static_cast<Offset>(pairs.size()), [&](int thread, Offset at) {
    const auto [i, j] = pairs[static_cast<std::size_t>(at)];
    const Offset rows = std::min(kBlock, task.x.n_rows - i), cols = std::min(kBlock, task.y.n_rows - j);
    const auto up = [](Offset size, Offset tile) { return (size + tile - 1) / tile * tile; };
    auto& space = *spaces[static_cast<std::size_t>(thread)];
    kernels.dense_block(a.values.data() + i * d, b.values.data() + j * d, a.bits.data() + i * words,
                        b.bits.data() + j * words, d, words, up(rows, kernels.tile_rows), up(cols, kernels.tile_cols),
                        space.s.data(), space.n.data(), kBlock);
    space.sink.put(space.s.data(), space.n.data(), kBlock, i, rows, j, cols);
  });
}

template <class T>
void gram_spmm(const GramTask<T>& task, int n_threads) {
  const auto& kernels = gram_kernels<T>();
  const Offset lanes = kernels.lanes, d = task.x.n_cols, n_x = task.x.n_rows, n_y = task.y.n_rows;
  const auto spaces = workspaces(task, n_threads, kBlock, lanes);
  const auto block_size = static_cast<std::size_t>(lanes * d);
  std::vector<std::vector<T>> values(spaces.size());
  std::vector<std::vector<std::uint8_t>> seen(spaces.size());
  parallel_tasks(n_threads, (n_y + lanes - 1) / lanes, [&](int thread, Offset at) {
    const auto t = static_cast<std::size_t>(thread);
    values[t].resize(block_size);
    seen[t].resize(block_size);
    const Offset j = at * lanes, cols = std::min(lanes, n_y - j);
    const auto fill = [&](bool with) {  // the block's entries are put in, and taken out again: the rest stays zero
      for (Offset lane = 0; lane < cols; ++lane)
        for (Offset p = task.y.offsets[j + lane]; p < task.y.offsets[j + lane + 1]; ++p) {
          const auto slot = static_cast<std::size_t>(task.y.indices[p] * lanes + lane);
          values[t][slot] = with ? task.y.values[p] : T{0};
          seen[t][slot] = with;
        }
    };
    fill(true);
    auto& space = *spaces[t];
    // By symmetry the rows above the block are enough: they are mirrored below it.
    const Offset last = task.symmetric ? j + cols : n_x;
    for (Offset i = 0; i < last;) {
      const Offset stop = task.symmetric && i < j ? std::min(i + kBlock, j) : std::min(i + kBlock, last);
      kernels.sparse_rows(task.x, i, stop, values[t].data(), seen[t].data(), space.s.data(), space.n.data());
      space.sink.put(space.s.data(), space.n.data(), lanes, i, stop - i, j, cols);
      i = stop;
    }
    fill(false);
  });
}

#define LACUNAR_INSTANTIATE(T)                       \
  template void gram_dense(const GramTask<T>&, int); \
  template void gram_spmm(const GramTask<T>&, int);
LACUNAR_INSTANTIATE(float)
LACUNAR_INSTANTIATE(double)
#undef LACUNAR_INSTANTIATE

}  // namespace lacunar
