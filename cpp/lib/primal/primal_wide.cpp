#include "lacunar/primal/primal_wide.hpp"

#include <algorithm>
#include <vector>

#include "lacunar/parallel/parallel.hpp"
#include "lacunar/parallel/prefetch.hpp"

namespace lacunar {
namespace {

constexpr Offset kTableRowsATask = 64, kRowsATask = 4096;

// Rows [first, last) of data: their entries in x~, and by row of the table those that meet it.
template <class T>
struct Block {
  std::vector<Offset> offsets;  // (n + 1), of the entries
  std::vector<Index> places;
  std::vector<T> values;
  std::vector<Offset> starts;  // (table rows + 1)
  std::vector<Index> members;  // by row of the table, ascending

  Block(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset first, Offset last)
      : offsets(1, 0), starts(static_cast<std::size_t>(map.rows() + 1), 0) {
    for (Offset row = first; row < last; ++row) append(map, rows, row_scale == nullptr ? 1.0 : row_scale[row], row);
    for (Offset row = first; row < last; ++row) each_table_row(map, rows, row, [&](Offset id) { ++start(id + 1); });
    for (Offset id = 0; id < map.rows(); ++id) start(id + 1) += start(id);
    members.resize(static_cast<std::size_t>(starts.back()));
    std::vector<Offset> next(starts);
    for (Offset row = first; row < last; ++row)
      each_table_row(map, rows, row, [&](Offset id) {
        members[static_cast<std::size_t>(next[static_cast<std::size_t>(id)]++)] = static_cast<Index>(row - first);
      });
  }

  Offset& start(Offset id) { return starts[static_cast<std::size_t>(id)]; }
  Offset start(Offset id) const { return starts[static_cast<std::size_t>(id)]; }
  Offset offset(Offset member) const { return offsets[static_cast<std::size_t>(member)]; }

  void prefetch(Offset position, Offset end) const {
    if (position >= end) return;
    const Offset member = members[static_cast<std::size_t>(position)];
    for (Offset p = offset(member); p < offset(member + 1); p += 64 / static_cast<Offset>(sizeof(T))) {
      lacunar::prefetch<For::reading>(places.data() + p);
      lacunar::prefetch<For::reading>(values.data() + p);
    }
  }

 private:
  // What Featurizer::load makes.
  void append(const FeatureMap& map, const Rows<T>& rows, double row_scale, Offset row) {
    const T scale = static_cast<T>(row_scale);
    const auto from = static_cast<std::ptrdiff_t>(places.size());
    places.insert(places.end(), rows.indices + rows.offsets[row], rows.indices + rows.offsets[row + 1]);
    for (Offset p = rows.offsets[row]; p < rows.offsets[row + 1]; ++p) values.push_back(rows.values[p] * scale);
    if (map.constant != 0) {
      places.push_back(static_cast<Index>(map.n_cols));
      values.push_back(static_cast<T>(map.constant) * scale);
    }
    if (map.indicator != 0)
      for (auto p = from, end = static_cast<std::ptrdiff_t>(places.size()); p < end; ++p) {
        places.push_back(static_cast<Index>(map.columns() + places[static_cast<std::size_t>(p)]));
        values.push_back(static_cast<T>(map.indicator) * scale);
      }
    offsets.push_back(static_cast<Offset>(places.size()));
  }

  template <class Visit>
  static void each_table_row(const FeatureMap& map, const Rows<T>& rows, Offset row, Visit visit) {
    visit(0);
    for (Offset p = rows.offsets[row]; p < rows.offsets[row + 1]; ++p) visit(1 + rows.indices[p]);
    if (map.constant != 0) visit(1 + map.n_cols);
  }
};

template <class T>
double gathered(const T* weights, const Index* places, const T* values, Offset entries) {
  T sum[4] = {};
  Offset e = 0;
  for (; e + 4 <= entries; e += 4)
    for (int u = 0; u < 4; ++u) sum[u] += weights[places[e + u]] * values[e + u];
  for (int u = 0; e < entries; ++e, ++u) sum[u] += weights[places[e]] * values[e];
  return static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

template <class T>
void scatter(const Addition<T>& one, const Addition<T>& other, Offset slice, Offset coef, const Index* places,
             const T* values, Offset entries) {
  T* weights = one.table + slice;
  const T c = static_cast<T>(one.coef[coef]);
  if (other.table == nullptr) {
    for (Offset e = 0; e < entries; ++e) weights[places[e]] += c * values[e];
    return;
  }
  T* more = other.table + slice;
  const T d = static_cast<T>(other.coef[coef]);
  for (Offset e = 0; e < entries; ++e) {
    weights[places[e]] += c * values[e];
    more[places[e]] += d * values[e];
  }
}

}  // namespace

template <class T>
void wide_decide(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs, const T* table,
                 double* values, int n_threads) {
  const Offset width = map.width(), stride = outputs * width;
  const Offset rows_a_task = std::clamp<Offset>((rows.n_rows + n_threads - 1) / std::max(n_threads, 1), 1, kRowsATask);
  // By value what the loops read: behind a reference it would be fetched anew for every row.
  const auto work = [&map, &rows, row_scale, outputs, table, values, width, stride, rows_a_task](Offset task,
                                                                                          InterruptCheck& check) {
    const Offset first = task * rows_a_task, last = std::min(first + rows_a_task, rows.n_rows);
    const Block<T> block(map, rows, row_scale, first, last);
    std::fill(values + first * outputs, values + last * outputs, 0.0);
    for (Offset id = 0; id < map.rows(); ++id) {
      const Offset end = block.start(id + 1);
      const double weight = map.weight[id > 0];
      if (id + 1 < map.rows() && block.start(id + 2) > end)
        prefetch<For::reading_once>(table, (id + 1) * stride, (id + 2) * stride);
      for (Offset at = block.start(id); at < end; ++at) {
        block.prefetch(at + 2, end);
        const Offset member = block.members[static_cast<std::size_t>(at)], from = block.offset(member);
        double* f = values + (first + member) * outputs;
        const Offset entries = block.offset(member + 1) - from;
        const Index* places = block.places.data() + from;
        const T* numbers = block.values.data() + from;
        for (Offset k = 0; k < outputs; ++k)
          f[k] += weight * gathered(table + id * stride + k * width, places, numbers, entries);
        check.after(outputs * entries);
      }
    }
  };
  parallel_tasks(n_threads, (rows.n_rows + rows_a_task - 1) / rows_a_task, work);
}

template <class T>
void wide_add(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs,
              const Addition<T>& one, const Addition<T>& other, int n_threads) {
  const Block<T> block(map, rows, row_scale, 0, rows.n_rows);
  const Uninterrupted whole;  // nothing is added without memory for the block, else all of it is
  const Offset table_rows = map.rows(), width = map.width(), stride = outputs * width;
  const auto work = [&block, one, other, outputs, table_rows, width, stride](Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kTableRowsATask, table_rows);
    for (Offset id = task * kTableRowsATask; id < last; ++id) {
      const Offset end = block.start(id + 1);
      if (id + 1 < last && block.start(id + 2) > end) {
        prefetch<For::reading_once>(one.table, (id + 1) * stride, (id + 2) * stride);
        if (other.table != nullptr) prefetch<For::reading_once>(other.table, (id + 1) * stride, (id + 2) * stride);
      }
      for (Offset at = block.start(id); at < end; ++at) {
        block.prefetch(at + 2, end);
        const Offset member = block.members[static_cast<std::size_t>(at)], from = block.offset(member);
        const Offset entries = block.offset(member + 1) - from;
        const Index* places = block.places.data() + from;
        const T* values = block.values.data() + from;
        for (Offset k = 0; k < outputs; ++k)
          scatter(one, other, id * stride + k * width, member * outputs + k, places, values, entries);
        check.after(2 * outputs * entries);
      }
    }
  };
  parallel_tasks(n_threads, (table_rows + kTableRowsATask - 1) / kTableRowsATask, work);
}

#define LACUNAR_WIDE(T)                                                                                           \
  template void wide_decide<T>(const FeatureMap&, const Rows<T>&, const double*, Offset, const T*, double*, int); \
  template void wide_add<T>(const FeatureMap&, const Rows<T>&, const double*, Offset, const Addition<T>&,         \
                            const Addition<T>&, int);
LACUNAR_WIDE(float)
LACUNAR_WIDE(double)
#undef LACUNAR_WIDE

}  // namespace lacunar
