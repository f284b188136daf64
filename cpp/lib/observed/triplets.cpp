#include "lacunar/observed/triplets.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kChunk = 1 << 16;         // triplets of a task
constexpr Offset kPiece = 1 << 10;         // triplets that are copied, then checked in the copy: it stays in the cache
constexpr Offset kBlockEntries = 1 << 15;  // of a block of rows: two copies fit the second cache
constexpr Offset kMostBlocks = 1 << 12;
constexpr int kDigit = 11;  // bits of a column sorted at a time

int threads_for(Offset n, int n_threads) { return threads_worth(n_threads, 16.0 * static_cast<double>(n)); }

std::size_t place(Offset at) { return static_cast<std::size_t>(at); }

// A single load, however often the value is used: what is checked is what is written.
template <class V>
V once(const V* at) {
  return *static_cast<const volatile V*>(at);
}

bool within(Offset number, Offset size) {
  return static_cast<std::uint64_t>(number) < static_cast<std::uint64_t>(size);
}

// Of triplets [first, last).
template <class N, class T>
TripletsSurvey survey_chunk(const Triplets<N, T>& t, Offset first, Offset last) {
  Offset outside = 0, known = 0, infinite = 0;
  for (Offset k = first; k < last; ++k) {
    const Offset row = t.row[k], col = t.col[k];
    outside += (row < 0) | (row >= t.n_rows) | (col < 0) | (col >= t.n_cols);
    known += t.value[k] == t.value[k];
    infinite += (t.value[k] == t.value[k]) & !(t.value[k] - t.value[k] == 0);
  }
  return {outside + infinite == 0, known};
}

template <class T>
struct Entry {
  std::uint32_t row, col;  // row of a block
  T value;
};

// Blocks of 2^shift rows, of which each is sorted by itself.
struct Blocks {
  int shift = 0;
  Offset count = 1;

  Blocks(Offset n_rows, Offset known) {
    const Offset n_blocks = std::clamp<Offset>(known / kBlockEntries, 1, kMostBlocks);
    while (shift < 31 && (n_rows >> shift) >= n_blocks) ++shift;
    count = (n_rows >> shift) + 1;
  }
};

// Entries of each block (count) among triplets [first, last); false where a row lies outside.
template <class N, class T>
bool count_blocks(const Triplets<N, T>& t, Offset first, Offset last, const Blocks& blocks, Offset* counts) {
  for (Offset k = first; k < last; ++k) {
    const Offset row = once(t.row + k);
    const T value = once(t.value + k);
    if (!within(row, t.n_rows)) return false;
    counts[row >> blocks.shift] += value == value;
  }
  return true;
}

// Triplets [first, last) to where the cursor of their block points; false where one is unsound or has no place.
template <class N, class T>
bool fill_blocks(const Triplets<N, T>& t, Offset first, Offset last, const Blocks& blocks, Offset known,
                 Offset* cursors, Entry<T>* entries) {
  const std::uint32_t low = (std::uint32_t{1} << blocks.shift) - 1;
  for (Offset k = first; k < last; ++k) {
    const T value = once(t.value + k);
    if (value != value) continue;
    const Offset row = once(t.row + k), col = once(t.col + k);
    if (!(within(row, t.n_rows) && within(col, t.n_cols) && value - value == 0)) return false;
    Offset& at = cursors[row >> blocks.shift];
    if (at >= known) return false;
    entries[at++] = {static_cast<std::uint32_t>(row) & low, static_cast<std::uint32_t>(col), value};
  }
  return true;
}

// Triplets that are not missing, block after block, in the order in which they came: every chunk has places of its own
// in every block. starts (count + 1). Null where triplets changed.
template <class N, class T>
std::unique_ptr<Entry<T>[]> by_block(const Triplets<N, T>& t, Offset known, const Blocks& blocks,
                                     std::vector<Offset>& starts, int n_threads) {
  const Offset n_chunks = std::max(threads_for(t.n, n_threads), 1), grain = (t.n + n_chunks - 1) / n_chunks;
  std::atomic<bool> unchanged{true};
  std::vector<Offset> begins(place(n_chunks * blocks.count));
  parallel_tasks(n_threads, n_chunks, [&](Offset chunk, InterruptCheck&) {
    Offset* counts = begins.data() + chunk * blocks.count;
    if (!count_blocks(t, chunk * grain, std::min((chunk + 1) * grain, t.n), blocks, counts)) unchanged = false;
  });
  Offset at = 0;
  for (Offset block = 0; block < blocks.count; ++block) {
    starts.push_back(at);
    for (Offset chunk = 0; chunk < n_chunks; ++chunk)
      at += std::exchange(begins[place(chunk * blocks.count + block)], at);
  }
  starts.push_back(at);
  if (!unchanged || at != known) return nullptr;
  std::unique_ptr<Entry<T>[]> entries(new Entry<T>[place(known)]);
  std::vector<Offset> cursors = begins;
  parallel_tasks(n_threads, n_chunks, [&](Offset chunk, InterruptCheck&) {
    Offset* cursor = cursors.data() + chunk * blocks.count;
    if (!fill_blocks(t, chunk * grain, std::min((chunk + 1) * grain, t.n), blocks, known, cursor, entries.get()))
      unchanged = false;
  });
  for (Offset chunk = 0; chunk < n_chunks; ++chunk)  // as many as were counted: each place is written once
    for (Offset block = 0; block < blocks.count; ++block) {
      const Offset end =
          chunk + 1 < n_chunks ? begins[place((chunk + 1) * blocks.count + block)] : starts[place(block) + 1];
      if (cursors[place(chunk * blocks.count + block)] != end) unchanged = false;
    }
  return unchanged ? std::move(entries) : nullptr;
}

// What a thread sorts a block in.
template <class T>
struct Sorter {
  std::unique_ptr<Entry<T>[]> other;
  Offset room = 0;
  std::vector<Offset> cursors;

  // Stable, by `bits` of the column from `from` on.
  void by_digit(const Entry<T>* entries, Offset n, int from, int bits, Entry<T>* out) {
    const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
    cursors.assign(place(1) << bits, 0);
    for (Offset k = 0; k < n; ++k) ++cursors[entries[k].col >> from & mask];
    Offset at = 0;
    for (Offset& cursor : cursors) at += std::exchange(cursor, at);
    for (Offset k = 0; k < n; ++k) out[place(cursors[entries[k].col >> from & mask]++)] = entries[k];
  }

  // The entries by column, in their place or in `other`.
  const Entry<T>* by_column(Entry<T>* entries, Offset n, Offset n_cols) {
    int bits = 0;
    while ((n_cols - 1) >> bits > 0) ++bits;
    const int passes = (bits + kDigit - 1) / kDigit;
    if (room < n) other.reset(new Entry<T>[place(room = n)]);
    Entry<T>*from = entries, *to = other.get();
    for (int pass = 0; pass < passes; ++pass) {
      const int low = bits * pass / passes, high = bits * (pass + 1) / passes;
      by_digit(from, n, low, high - low, to);
      std::swap(from, to);
    }
    return from;
  }

  // Then by row, where `offsets` (rows) get where each begins, counted from `start`.
  void by_row(const Entry<T>* entries, Offset n, Offset rows, Offset start, Offset* offsets, Index* indices,
              T* values) {
    cursors.assign(place(rows), 0);
    for (Offset k = 0; k < n; ++k) ++cursors[entries[k].row];
    Offset at = start;
    for (Offset r = 0; r < rows; ++r) {
      offsets[r] = at;
      at += std::exchange(cursors[place(r)], at);
    }
    for (Offset k = 0; k < n; ++k) {
      const Offset to = cursors[entries[k].row]++;
      indices[to] = static_cast<Index>(entries[k].col);
      values[to] = entries[k].value;
    }
  }
};

// Whether copied triplets are sound and ascend by row and column, from row `begun` to row `end`.
template <class N, class T>
bool ascend(const N* row, const N* col, const T* value, Offset n, Offset begun, Offset end, Offset n_cols) {
  const N width = static_cast<N>(n_cols);
  bool wrong = (row[0] < std::max<Offset>(begun, 0)) | (row[n - 1] > end);
  for (Offset k = 0; k < n; ++k) wrong |= (col[k] < 0) | (col[k] >= width) | !(value[k] - value[k] == 0);
  for (Offset k = 1; k < n; ++k) wrong |= (row[k] < row[k - 1]) | ((row[k] == row[k - 1]) & (col[k] <= col[k - 1]));
  return !wrong;
}

// Sorted triplets [first, last), where offsets of rows up to `begun` are known and those up to `end` are to be written.
template <class N, class T>
bool copy_chunk(const Triplets<N, T>& t, Offset first, Offset last, Offset begun, Offset end, Offset* offsets,
                Index* indices, T* values) {
  N row[kPiece], col[kPiece];
  for (Offset from = first; from < last; from += kPiece) {
    const Offset n = std::min(kPiece, last - from);
    std::copy(t.row + from, t.row + from + n, row);
    std::copy(t.col + from, t.col + from + n, col);
    std::copy(t.value + from, t.value + from + n, values + from);
    if (!ascend(row, col, values + from, n, begun, end, t.n_cols)) return false;
    if (from > first && row[0] == begun && col[0] <= indices[from - 1]) return false;
    for (Offset k = 0; k < n; ++k) indices[from + k] = static_cast<Index>(col[k]);
    for (Offset k = 0; k < n; ++k)
      while (begun < row[k]) offsets[++begun] = from + k;
  }
  return begun == end;
}

bool repeats(const Offset* offsets, Offset rows, Offset end, const Index* indices) {
  Offset same = 0;
  for (Offset r = 0; r < rows; ++r)
    for (Offset p = offsets[r] + 1, last = r + 1 < rows ? offsets[r + 1] : end; p < last; ++p)
      same += indices[p] == indices[p - 1];
  return same > 0;
}

}  // namespace

template <class N, class T>
TripletsSurvey survey_triplets(const Triplets<N, T>& triplets, int n_threads) {
  std::atomic<bool> sound{true};
  std::atomic<Offset> known{0};
  parallel_tasks(threads_for(triplets.n, n_threads), (triplets.n + kChunk - 1) / kChunk,
                 [&](Offset task, InterruptCheck&) {
                   const Offset first = task * kChunk;
                   const auto survey = survey_chunk(triplets, first, std::min(first + kChunk, triplets.n));
                   if (!survey.sound) sound = false;
                   known += survey.known;
                 });
  return {sound, known};
}

template <class N, class T>
bool copy_triplets(const Triplets<N, T>& t, Offset* offsets, Index* indices, T* values, int n_threads) {
  const Offset n_chunks = (t.n + kChunk - 1) / kChunk;
  std::vector<Offset> before(place(n_chunks) + 1, -1);  // the row before each chunk, and the last one
  for (Offset chunk = 1; chunk <= n_chunks; ++chunk) {
    const Offset row = before[place(chunk)] = once(t.row + std::min(chunk * kChunk, t.n) - 1);
    if (!within(row, t.n_rows) || row < before[place(chunk) - 1]) return false;
  }
  std::atomic<bool> sorted{true};
  parallel_tasks(threads_for(t.n, n_threads), n_chunks, [&](Offset chunk, InterruptCheck&) {
    const Offset first = chunk * kChunk, last = std::min(first + kChunk, t.n);
    const Offset begun = before[place(chunk)], end = before[place(chunk) + 1];
    if (sorted && !copy_chunk(t, first, last, begun, end, offsets, indices, values)) sorted = false;
  });
  if (!sorted) return false;
  for (Offset row = before.back() + 1; row <= t.n_rows; ++row) offsets[row] = t.n;
  for (Offset chunk = 1; chunk < n_chunks; ++chunk) {  // a row that goes on from the chunk before
    const Offset at = chunk * kChunk;
    if (offsets[before[place(chunk)] + 1] != at && indices[at] <= indices[at - 1]) return false;
  }
  return true;
}

template <class N, class T>
std::optional<bool> sort_triplets(const Triplets<N, T>& triplets, Offset known, Offset* offsets, Index* indices,
                                  T* values, int n_threads) {
  const Blocks blocks(triplets.n_rows, known);
  std::vector<Offset> starts;
  const auto entries = by_block(triplets, known, blocks, starts, n_threads);
  if (!entries) return std::nullopt;
  std::atomic<bool> repeated{false};
  parallel_tasks(
      threads_for(known, n_threads), blocks.count, [] { return Sorter<T>(); },
      [&](Sorter<T>& sorter, Offset block, InterruptCheck&) {
        const Offset start = starts[place(block)], end = starts[place(block) + 1], first = block << blocks.shift;
        const Offset rows = std::min((block + 1) << blocks.shift, triplets.n_rows) - first;
        const Entry<T>* sorted = sorter.by_column(entries.get() + start, end - start, triplets.n_cols);
        sorter.by_row(sorted, end - start, rows, start, offsets + first, indices, values);
        if (repeats(offsets + first, rows, end, indices)) repeated = true;
      });
  offsets[triplets.n_rows] = known;
  return repeated.load();
}

// The mean of values that all are finite, so that it is: where their sum overflows, each is divided first.
template <class T>
T mean_of(const T* values, Offset n) {
  double sum = 0;
  for (Offset k = 0; k < n; ++k) sum += static_cast<double>(values[k]);
  if (std::isfinite(sum)) return static_cast<T>(sum / static_cast<double>(n));
  double mean = 0;
  for (Offset k = 0; k < n; ++k) mean += static_cast<double>(values[k]) / static_cast<double>(n);
  const auto [least, largest] = std::minmax_element(values, values + n);
  return static_cast<T>(std::clamp(mean, static_cast<double>(*least), static_cast<double>(*largest)));
}

template <class T>
Offset merge_repeated(Offset n_rows, bool mean, Offset* offsets, Index* indices, T* values) {
  Offset n_kept = 0, p = 0;
  InterruptCheck check;
  for (Offset row = 0; row < n_rows; ++row) {
    const Offset first = p, end = offsets[row + 1];
    offsets[row] = n_kept;
    while (p < end) {
      const Offset begin = p;
      while (p < end && indices[p] == indices[begin]) ++p;
      indices[n_kept] = indices[begin];
      values[n_kept++] = mean && p - begin > 1 ? mean_of(values + begin, p - begin) : values[p - 1];
    }
    check.after(4 * (end - first));
  }
  return offsets[n_rows] = n_kept;
}

#define LACUNAR_INSTANTIATE(N, T)                                               \
  template TripletsSurvey survey_triplets(const Triplets<N, T>&, int);          \
  template bool copy_triplets(const Triplets<N, T>&, Offset*, Index*, T*, int); \
  template std::optional<bool> sort_triplets(const Triplets<N, T>&, Offset, Offset*, Index*, T*, int);
LACUNAR_INSTANTIATE(std::int32_t, float)
LACUNAR_INSTANTIATE(std::int32_t, double)
LACUNAR_INSTANTIATE(std::int64_t, float)
LACUNAR_INSTANTIATE(std::int64_t, double)
#undef LACUNAR_INSTANTIATE
template Offset merge_repeated(Offset, bool, Offset*, Index*, float*);
template Offset merge_repeated(Offset, bool, Offset*, Index*, double*);

}  // namespace lacunar
