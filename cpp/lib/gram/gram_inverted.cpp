// The third way over the pairs: an inverted index, which touches only pairs that share a column.
#include <algorithm>
#include <memory>

#include "lacunar/gram/karma_gram.hpp"
#include "lacunar/parallel/parallel.hpp"

namespace lacunar {

namespace {

constexpr Offset grain = 16;        // rows of a task
constexpr double kInverting = 256;  // products in the time of an entry that goes to its column

// The columns of a table: entry p of column k is row[p], value[p]. A task has the columns of a range to itself.
template <class T>
struct Inverted {
  std::vector<Offset> offsets;
  std::unique_ptr<Index[]> row;
  std::unique_ptr<T[]> value;

  Inverted(const Rows<T>& y, int n_threads)
      : offsets(static_cast<std::size_t>(y.n_cols + 2)),
        row(std::make_unique_for_overwrite<Index[]>(static_cast<std::size_t>(y.n_observed()))),
        value(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(y.n_observed()))) {
    for (Offset p = 0; p < y.n_observed(); ++p) ++offsets[static_cast<std::size_t>(y.indices[p]) + 2];
    for (std::size_t k = 1; k < offsets.size(); ++k) offsets[k] += offsets[k - 1];
    const int threads = threads_worth(n_threads, kInverting * static_cast<double>(y.n_observed()));
    const Offset n_ranges = std::min<Offset>(threads, std::max<Offset>(y.n_cols, 1));
    parallel_tasks(threads, n_ranges, [&](Offset range, InterruptCheck& check) {
      const Offset first = range * y.n_cols / n_ranges, last = (range + 1) * y.n_cols / n_ranges;
      for (Offset i = 0; i < y.n_rows; ++i) {
        const Index *at = y.indices + y.offsets[i], *end = y.indices + y.offsets[i + 1];
        if (first > 0) at = std::lower_bound(at, end, first);
        if (last < y.n_cols) end = std::lower_bound(at, end, last);
        for (; at < end; ++at) {
          const auto slot = static_cast<std::size_t>(offsets[static_cast<std::size_t>(*at) + 1]++);
          row[slot] = static_cast<Index>(i);
          value[slot] = y.values[at - y.indices];
        }
        check.after(8 * (y.offsets[i + 1] - y.offsets[i]));
      }
    });
  }

  ByColumn<T> columns() const { return {offsets.data(), row.get(), value.get()}; }
};

template <class T>
int useful_threads(const GramTask<T>& task, int n_threads) {
  const auto mean_column =
      static_cast<double>(task.y.n_observed()) / static_cast<double>(std::max<Offset>(task.y.n_cols, 1));
  const auto n_x = static_cast<double>(task.x.n_rows), n_y = static_cast<double>(task.y.n_rows);
  return threads_worth(n_threads,
                       16 * static_cast<double>(task.x.n_observed()) * mean_column + 4 * n_x * n_y);  // one by one
}

// The pairs of one row that share a column.
template <class T>
struct InvertedRow {
  std::vector<Pair<T>> pairs;  // (n_y), all zero between rows
  std::vector<Index> touched;  // columns of the pairs in use, and one place more
  std::vector<T> line;         // a finished row

  explicit InvertedRow(Offset n_y)
      : pairs(static_cast<std::size_t>(n_y)), touched(static_cast<std::size_t>(n_y) + 1), line(pairs.size()) {}

  std::size_t gather(const GramTask<T>& task, const Inverted<T>& y, Offset i) {
    return static_cast<std::size_t>(kernels_of<T>().gram.meet(task.x, i, y.columns(), pairs.data(), touched.data()));
  }

  void clear(std::size_t n_touched) {
    for (std::size_t t = 0; t < n_touched; ++t) pairs[static_cast<std::size_t>(touched[t])] = {};
  }
};

template <class T>
void write_line(const GramTask<T>& task, InvertedRow<T>& w, std::size_t n_touched, Offset i, std::size_t q) {
  const Offset n_x = task.x.n_rows, n_y = task.y.n_rows, form_at = static_cast<Offset>(q);
  const Form<T>& form = task.forms[q];
  const T row_scale = task.row_scale ? task.row_scale[form_at * n_x + i] : T{1};
  const T* col_scale = task.col_scale ? task.col_scale + form_at * n_y : nullptr;
  const T nothing_common = form.constant * form.table[0];
  for (std::size_t j = 0; j < w.line.size(); ++j)
    w.line[j] = nothing_common * (col_scale ? row_scale * col_scale[j] : row_scale);
  kernels_of<T>().gram.finish_pairs(w.pairs.data(), w.touched.data(), static_cast<Offset>(n_touched), form, row_scale,
                                    col_scale, w.line.data());
  kernels_of<T>().gram.stream(w.line.data(), task.out + (form_at * n_x + i) * n_y, n_y);
}

}  // namespace

// Symmetry is not used: computing a pair again is cheaper than mirroring it.
template <class T>
void gram_inverted(const GramTask<T>& task, int n_threads) {
  const Inverted<T> y(task.y, n_threads);
  const auto work = [&](InvertedRow<T>& row, Offset at, InterruptCheck& check) {
    for (Offset i = at * grain; i < std::min((at + 1) * grain, task.x.n_rows); ++i) {
      const std::size_t n_touched = row.gather(task, y, i);
      for (std::size_t q = 0; q < task.forms.size(); ++q) write_line(task, row, n_touched, i, q);
      row.clear(n_touched);
      check.look();
    }
  };
  parallel_tasks(
      useful_threads(task, n_threads), (task.x.n_rows + grain - 1) / grain,
      [&] { return InvertedRow<T>(task.y.n_rows); }, work);
}

template void gram_inverted(const GramTask<float>&, int);
template void gram_inverted(const GramTask<double>&, int);

}  // namespace lacunar
