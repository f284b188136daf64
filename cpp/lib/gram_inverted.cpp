// The third way over the pairs: an inverted index, which touches only pairs that share a column.
#include <algorithm>
#include <memory>

#include "lacunar/karma_gram.hpp"
#include "lacunar/parallel.hpp"

namespace lacunar {

namespace {

constexpr Offset grain = 16;  // rows of a task

// Sum and count of one column of the output row, side by side: one cache line serves both.
template <class T>
struct Pair {
  T s;
  std::int32_t n;
};

// The columns of a table: entry p of column k is row[p], value[p].
template <class T>
struct Inverted {
  std::vector<Offset> offsets;
  std::vector<Index> row;
  std::vector<T> value;

  explicit Inverted(const Rows<T>& y)
      : offsets(static_cast<std::size_t>(y.n_cols + 2)), row(static_cast<std::size_t>(y.n_observed())), value(row.size()) {
    for (Offset p = 0; p < y.n_observed(); ++p) ++offsets[static_cast<std::size_t>(y.indices[p]) + 2];
    for (std::size_t k = 1; k < offsets.size(); ++k) offsets[k] += offsets[k - 1];
    for (Offset i = 0; i < y.n_rows; ++i)
      for (Offset p = y.offsets[i]; p < y.offsets[i + 1]; ++p) {
        const auto slot = static_cast<std::size_t>(offsets[static_cast<std::size_t>(y.indices[p]) + 1]++);
        row[slot] = static_cast<Index>(i);
        value[slot] = y.values[p];
      }
  }
};

// The pairs of one row that share a column.
template <class T>
struct InvertedRow {
  std::vector<Pair<T>> pairs;   // (n_y), all zero between rows
  std::vector<Index> touched;   // columns of the pairs in use, and one place more
  std::vector<T> line;          // a finished row

  explicit InvertedRow(Offset n_y)
      : pairs(static_cast<std::size_t>(n_y)), touched(static_cast<std::size_t>(n_y) + 1), line(pairs.size()) {}

  std::size_t gather(const GramTask<T>& task, const Inverted<T>& y, Offset i) {
    std::size_t n_touched = 0;
    for (Offset p = task.x.offsets[i]; p < task.x.offsets[i + 1]; ++p) {
      const auto k = static_cast<std::size_t>(task.x.indices[p]);
      for (auto at = static_cast<std::size_t>(y.offsets[k]); at < static_cast<std::size_t>(y.offsets[k + 1]); ++at) {
        Pair<T>& pair = pairs[static_cast<std::size_t>(y.row[at])];
        touched[n_touched] = y.row[at];  // written always, kept when the pair is new: no branch
        n_touched += pair.n == 0;
        pair.s += task.x.values[p] * y.value[at];
        ++pair.n;
      }
    }
    return n_touched;
  }

  void clear(std::size_t n_touched) {
    for (std::size_t t = 0; t < n_touched; ++t) pairs[static_cast<std::size_t>(touched[t])] = {};
  }
};

// form(s, n) row_scale col_scale[j] of one pair.
template <class T>
T finished(const Form<T>& form, const Pair<T>& pair, T scale) {
  return (form.on_sum * pair.s + (form.on_count * static_cast<T>(pair.n) + form.constant)) * form.table[pair.n] * scale;
}

template <class T>
void write_line(const GramTask<T>& task, InvertedRow<T>& w, std::size_t n_touched, Offset i, std::size_t q) {
  const Offset n_x = task.x.n_rows, n_y = task.y.n_rows, form_at = static_cast<Offset>(q);
  const Form<T>& form = task.forms[q];
  const T row_scale = task.row_scale ? task.row_scale[form_at * n_x + i] : T{1};
  const T* col_scale = task.col_scale ? task.col_scale + form_at * n_y : nullptr;
  const T nothing_common = form.constant * form.table[0] * row_scale;
  for (std::size_t j = 0; j < w.line.size(); ++j) w.line[j] = col_scale ? nothing_common * col_scale[j] : nothing_common;
  for (std::size_t t = 0; t < n_touched; ++t) {
    const auto j = static_cast<std::size_t>(w.touched[t]);
    w.line[j] = finished(form, w.pairs[j], col_scale ? row_scale * col_scale[j] : row_scale);
  }
  gram_kernels<T>().stream(w.line.data(), task.out + (form_at * n_x + i) * n_y, n_y);
}

}  // namespace

// Symmetry is not used: computing a pair again is cheaper than mirroring it.
template <class T>
void gram_inverted(const GramTask<T>& task, int n_threads) {
  const Inverted<T> y(task.y);
  std::vector<std::unique_ptr<InvertedRow<T>>> lines(static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_tasks(n_threads, (task.x.n_rows + grain - 1) / grain, [&](int thread, Offset at) {
    auto& slot = lines[static_cast<std::size_t>(thread)];
    if (!slot) slot = std::make_unique<InvertedRow<T>>(task.y.n_rows);
    for (Offset i = at * grain; i < std::min((at + 1) * grain, task.x.n_rows); ++i) {
      const std::size_t n_touched = slot->gather(task, y, i);
      for (std::size_t q = 0; q < task.forms.size(); ++q) write_line(task, *slot, n_touched, i, q);
      slot->clear(n_touched);
    }
  });
}

// Every task keeps its own rows, so that order and bits do not depend on the threads.
template <class T>
SparseGram<T> gram_sparse(const GramTask<T>& task, int n_threads) {
  const Inverted<T> y(task.y);
  const Offset n_x = task.x.n_rows, n_tasks = (n_x + grain - 1) / grain;
  SparseGram<T> out;
  out.offsets.assign(static_cast<std::size_t>(n_x) + 1, 0);
  std::vector<SparseGram<T>> parts(static_cast<std::size_t>(n_tasks));
  std::vector<std::unique_ptr<InvertedRow<T>>> rows(static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_tasks(n_threads, n_tasks, [&](int thread, Offset at) {
    auto& row = rows[static_cast<std::size_t>(thread)];
    if (!row) row = std::make_unique<InvertedRow<T>>(task.y.n_rows);
    auto& part = parts[static_cast<std::size_t>(at)];
    for (Offset i = at * grain; i < std::min((at + 1) * grain, n_x); ++i) {
      const std::size_t n_touched = row->gather(task, y, i);
      const T row_scale = task.row_scale ? task.row_scale[i] : T{1};
      for (std::size_t t = 0; t < n_touched; ++t) {
        const Index j = row->touched[t];
        const T scale = task.col_scale ? row_scale * task.col_scale[j] : row_scale;
        part.indices.push_back(j);
        part.values.push_back(finished(task.forms[0], row->pairs[static_cast<std::size_t>(j)], scale));
      }
      out.offsets[static_cast<std::size_t>(i) + 1] = static_cast<Offset>(n_touched);
      row->clear(n_touched);
    }
  });
  for (std::size_t i = 1; i < out.offsets.size(); ++i) out.offsets[i] += out.offsets[i - 1];
  out.indices.reserve(static_cast<std::size_t>(out.offsets.back()));
  out.values.reserve(out.indices.capacity());
  for (auto& part : parts) {
    out.indices.insert(out.indices.end(), part.indices.begin(), part.indices.end());
    out.values.insert(out.values.end(), part.values.begin(), part.values.end());
    part = {};
  }
  return out;
}

#define LACUNAR_INSTANTIATE(T)                              \
  template void gram_inverted(const GramTask<T>&, int);     \
  template SparseGram<T> gram_sparse(const GramTask<T>&, int);
LACUNAR_INSTANTIATE(float)
LACUNAR_INSTANTIATE(double)
#undef LACUNAR_INSTANTIATE

}  // namespace lacunar
