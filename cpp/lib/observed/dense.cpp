#include "lacunar/observed/dense.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kCellsATask = 1 << 16;
constexpr Offset kSide = 8;  // columns turned into rows together

// Rows of a task; of columns at least some cache lines each, since they are read a piece at a time.
template <class S>
Offset grain_of(const DenseTable<S>& table) {
  const Offset rows = kCellsATask / std::max<Offset>(table.n_cols, 1);
  return table.columns.empty() ? std::max<Offset>(rows, 1) : std::clamp<Offset>(rows, 16, 1024);
}

template <class S>
int useful_threads(const DenseTable<S>& table, int n_threads) {
  return threads_worth(n_threads, 8.0 * static_cast<double>(table.n_rows) * static_cast<double>(table.n_cols));
}

// Rows [first, last) of one column: where they are, or with NaN for nulls in `space`. Bits that are all set are a NaN.
template <class S>
const S* piece_of(const DenseColumn<S>& column, Offset first, Offset last, S* space) {
  if (column.valid == nullptr) return column.cells + first;
  using Word = std::conditional_t<sizeof(S) == 8, std::uint64_t, std::uint32_t>;
  const S* cells = column.cells + first;
  const Offset bit = column.bit + first, n = last - first;
  for (Offset k = 0; k < n; k += 8) {
    const Offset count = std::min<Offset>(n - k, 8), at = bit + k;
    unsigned known = column.valid[at >> 3] >> (at & 7);
    if ((at & 7) + count > 8) known |= static_cast<unsigned>(column.valid[(at >> 3) + 1]) << (8 - (at & 7));
    for (Offset c = 0; c < count; ++c)
      space[k + c] = std::bit_cast<S>(std::bit_cast<Word>(cells[k + c]) | (Word{known >> c & 1} - 1));
  }
  return space;
}

// What a thread needs to read rows of a table.
template <class S, class T>
struct Reader {
  std::vector<S> piece, tile;
  std::vector<T> line;
  bool finite = true;

  // The first of rows [first, last), and the distance to the next one.
  const S* rows(const DenseTable<S>& table, Offset first, Offset last, Offset& pitch) {
    if (table.columns.empty()) return pitch = table.pitch, table.cells + first * table.pitch;
    pitch = table.n_cols;
    const Offset n = last - first;
    piece.resize(static_cast<std::size_t>(n * kSide));
    tile.resize(static_cast<std::size_t>(n * pitch));
    for (Offset j = 0; j < pitch; j += kSide) turn(table, first, last, j, std::min(kSide, pitch - j));
    return tile.data();
  }

  // Some columns side by side, so that a cache line of the tile is written at once.
  void turn(const DenseTable<S>& table, Offset first, Offset last, Offset j, Offset count) {
    const S* from[kSide];
    for (Offset c = 0; c < kSide; ++c)
      from[c] = piece_of(table.columns[static_cast<std::size_t>(j + std::min(c, count - 1))], first, last,
                         piece.data() + c * (last - first));
    S* to = tile.data() + j;
    for (Offset i = 0; i < last - first; ++i, to += table.n_cols) {
      if (count == kSide)
        for (Offset c = 0; c < kSide; ++c) to[c] = from[c][i];
      else
        for (Offset c = 0; c < count; ++c) to[c] = from[c][i];
    }
  }

  // A row in T, standardised.
  const T* read(const DenseTable<S>& table, const S* row) {
    if constexpr (std::is_same_v<S, T>)
      if (table.scale == nullptr) return row;
    line.resize(static_cast<std::size_t>(table.n_cols));
    const auto& dense = kernels_of<S>().dense;
    if constexpr (std::is_same_v<T, float>)
      finite &= dense.read_float(row, table.center, table.scale, table.n_cols, line.data());
    else
      finite &= dense.read_double(row, table.center, table.scale, table.n_cols, line.data());
    return line.data();
  }
};

// Entries of rows [first, last) into counts.
template <class S>
bool count_rows(const DenseTable<S>& table, Offset first, Offset last, Offset* counts, std::vector<S>& space) {
  const auto& dense = kernels_of<S>().dense;
  bool infinite = false;
  if (table.columns.empty()) {
    for (Offset i = first; i < last; ++i)
      counts[i] = dense.count(table.cells + i * table.pitch, table.scale, table.n_cols, &infinite);
    return !infinite;
  }
  space.resize(static_cast<std::size_t>(last - first));
  std::fill(counts + first, counts + last, 0);
  std::vector<Offset> ignored(table.scale ? space.size() : 0);
  for (std::size_t j = 0; j < table.columns.size(); ++j) {
    const S* piece = piece_of(table.columns[j], first, last, space.data());
    const bool has_scale = table.scale == nullptr || table.scale[j] == table.scale[j];
    infinite |= !dense.count_column(piece, last - first, has_scale ? counts + first : ignored.data());
  }
  return !infinite;
}

}  // namespace

template <class S>
bool count_dense(const DenseTable<S>& table, Offset* offsets, int n_threads) {
  const Offset grain = grain_of(table);
  std::atomic<bool> finite{true};
  parallel_tasks(
      useful_threads(table, n_threads), (table.n_rows + grain - 1) / grain, [] { return std::vector<S>(); },
      [&](std::vector<S>& space, Offset task, InterruptCheck&) {
        const Offset first = task * grain, last = std::min(first + grain, table.n_rows);
        if (!count_rows(table, first, last, offsets + 1, space)) finite = false;
      });
  offsets[0] = 0;
  for (Offset i = 0; i < table.n_rows; ++i) offsets[i + 1] += offsets[i];
  return finite;
}

template <class S, class T>
bool fill_dense(const DenseTable<S>& table, const Offset* offsets, Index* indices, T* values, int n_threads) {
  const Offset grain = grain_of(table);
  std::atomic<bool> finite{true};
  parallel_tasks(
      useful_threads(table, n_threads), (table.n_rows + grain - 1) / grain, [] { return Reader<S, T>(); },
      [&](Reader<S, T>& reader, Offset task, InterruptCheck&) {
        const Offset first = task * grain, last = std::min(first + grain, table.n_rows);
        Offset pitch = 0;
        const S* rows = reader.rows(table, first, last, pitch);
        for (Offset i = first; i < last; ++i) {
          const T* row = reader.read(table, rows + (i - first) * pitch);
          const Offset entries = offsets[i + 1] - offsets[i];  // fewer where a scale is 0, or someone writes meanwhile
          reader.finite &= entries == kernels_of<T>().dense.keep(row, table.n_cols, entries, indices + offsets[i],
                                                                 values + offsets[i]);
        }
        if (!reader.finite) finite = false;
      });
  return finite;
}

template bool count_dense(const DenseTable<float>&, Offset*, int);
template bool count_dense(const DenseTable<double>&, Offset*, int);
template bool fill_dense(const DenseTable<float>&, const Offset*, Index*, float*, int);
template bool fill_dense(const DenseTable<float>&, const Offset*, Index*, double*, int);
template bool fill_dense(const DenseTable<double>&, const Offset*, Index*, float*, int);
template bool fill_dense(const DenseTable<double>&, const Offset*, Index*, double*, int);

}  // namespace lacunar
