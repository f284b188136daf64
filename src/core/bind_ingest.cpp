#include <pybind11/stl.h>

#include <optional>
#include <utility>
#include <vector>

#include "either.hpp"
#include "lacunar/observed/dense.hpp"
#include "lacunar/observed/triplets.hpp"

namespace lacunar::bind {
namespace {

template <class S>
using Strided = py::array_t<S, 0>;
using Scales = std::optional<Array<double>>;
using Bits = std::pair<Array<std::uint8_t>, Offset>;  // validity, and the bit of the first row

// A matrix whose rows or columns lie cell by cell, read where it is.
template <class S>
DenseTable<S> dense_of(const Strided<S>& cells, const Scales& center, const Scales& scale) {
  expect_matrix(cells, "cells");
  if (!py::detail::check_flags(cells.ptr(), py::detail::npy_api::NPY_ARRAY_ALIGNED_))
    throw std::invalid_argument("cells must be aligned");
  constexpr Offset size = sizeof(S);
  const Offset n = cells.shape(0), d = cells.shape(1), down = cells.strides(0), across = cells.strides(1);
  int_of(d, "the number of columns");
  DenseTable<S> table{n, d};
  if (center) expect_size(*center, d, "center"), table.center = center->data();
  if (scale) expect_size(*scale, d, "scale"), table.scale = scale->data();
  if (scale.has_value() != center.has_value()) throw std::invalid_argument("center and scale come together");
  if ((d <= 1 || across == size) && down % size == 0) {
    table.cells = cells.data();
    table.pitch = down / size;
  } else if ((n <= 1 || down == size) && across % size == 0) {
    for (Offset j = 0; j < d; ++j) table.columns.push_back({cells.data() + j * (across / size)});
  } else {
    throw std::invalid_argument("rows or columns must lie cell by cell");
  }
  return table;
}

// None where a value is not finite.
template <class S, class T>
py::object entries_of(const DenseTable<S>& table, int n_threads) {
  Array<Offset> indptr(table.n_rows + 1);
  Offset* offsets = indptr.mutable_data();
  bool finite;
  {
    const Released nogil;
    finite = count_dense(table, offsets, n_threads);
  }
  if (!finite) return py::none();
  Array<Index> indices(offsets[table.n_rows]);
  Array<T> values(offsets[table.n_rows]);
  {
    Index* j = indices.mutable_data();
    T* v = values.mutable_data();
    const Released nogil;
    finite = fill_dense(table, offsets, j, v, n_threads);
  }
  if (!finite) return py::none();
  return py::make_tuple(indptr, indices, values);
}

template <class S>
py::object entries_in(const DenseTable<S>& table, bool single, int n_threads) {
  return single ? entries_of<S, float>(table, n_threads) : entries_of<S, double>(table, n_threads);
}

template <class S>
py::object dense_entries(const Strided<S>& cells, bool single, const Scales& center, const Scales& scale,
                         int n_threads) {
  return entries_in(dense_of(cells, center, scale), single, n_threads);
}

py::object column_entries(const std::vector<Array<double>>& columns, const std::vector<std::optional<Bits>>& valid,
                          Offset n_rows, bool single, int n_threads) {
  const auto d = static_cast<Offset>(columns.size());
  if (valid.size() != columns.size() || n_rows < 0) throw std::invalid_argument("valid must be as many as columns");
  DenseTable<double> table{n_rows, int_of(d, "the number of columns")};
  for (std::size_t j = 0; j < columns.size(); ++j) {
    expect_size(columns[j], n_rows, "every column");
    table.columns.push_back({columns[j].data()});
    if (!valid[j]) continue;
    const auto& [bits, first] = *valid[j];
    if (first < 0 || first + n_rows > 8 * bits.size()) throw std::invalid_argument("too few bits of validity");
    table.columns.back().valid = bits.data();
    table.columns.back().bit = first;
  }
  return entries_in(table, single, n_threads);
}

// Sorted triplets as they are; None where they are not.
template <class N, class T>
py::object in_order(const Triplets<N, T>& triplets, int n_threads) {
  Array<Offset> indptr(triplets.n_rows + 1);
  Array<Index> indices(triplets.n);
  Array<T> values(triplets.n);
  bool sorted;
  {
    Offset* o = indptr.mutable_data();
    Index* i = indices.mutable_data();
    T* v = values.mutable_data();
    const Released nogil;
    sorted = copy_triplets(triplets, o, i, v, n_threads);
  }
  if (!sorted) return py::none();
  return py::make_tuple(indptr, indices, values, false);
}

// None where a triplet lies outside or is infinite, or was written to while they were read.
template <class N, class T>
py::object triplet_entries(const Array<N>& row, const Array<N>& col, const Array<T>& value, Offset n_rows,
                           Offset n_cols, int n_threads) {
  expect_size(row, value.size(), "row");
  expect_size(col, value.size(), "col");
  int_of(n_cols, "n_cols");
  product_of({n_rows, static_cast<Offset>(sizeof(Offset))});
  const Triplets<N, T> triplets{row.data(), col.data(), value.data(), static_cast<Offset>(value.size()),
                                n_rows,     n_cols};
  if (auto entries = in_order(triplets, n_threads); !entries.is_none()) return entries;
  TripletsSurvey survey;
  {
    const Released nogil;
    survey = survey_triplets(triplets, n_threads);
  }
  if (!survey.sound) return py::none();
  Array<Offset> indptr(n_rows + 1);
  Array<Index> indices(survey.known);
  Array<T> values(survey.known);
  std::optional<bool> repeated;
  {
    Offset* o = indptr.mutable_data();
    Index* i = indices.mutable_data();
    T* v = values.mutable_data();
    const Released nogil;
    repeated = sort_triplets(triplets, survey.known, o, i, v, n_threads);
  }
  if (!repeated) return py::none();
  return py::make_tuple(indptr, indices, values, *repeated);
}

template <class T>
Offset merged(Array<Offset>& indptr, Array<Index>& indices, Array<T>& values, bool mean) {
  const auto rows = rows_of(indptr, indices, values, 0);
  Offset* o = indptr.mutable_data();
  Index* i = indices.mutable_data();
  T* v = values.mutable_data();
  const Released nogil;
  return merge_repeated(rows.n_rows, mean, o, i, v);
}

template <class S>
void bind_dense(py::module_& m) {
  using py::arg;
  m.def("dense_entries", &dense_entries<S>, arg("cells").noconvert(), arg("single"),
        arg("center").noconvert().none(true), arg("scale").noconvert().none(true), arg("n_threads"),
        "(indptr, indices, values) of the cells that are not NaN, standardised; None where one is not finite.");
}

template <class N, class T>
void bind_triplets(py::module_& m) {
  using py::arg;
  m.def("triplet_entries", &triplet_entries<N, T>, arg("row").noconvert(), arg("col").noconvert(),
        arg("value").noconvert(), arg("n_rows"), arg("n_cols"), arg("n_threads"),
        "(indptr, indices, values, whether a cell comes twice), sorted; None where a triplet is outside or infinite, or "
        "was written to while it was read.");
}

}  // namespace

void bind_ingest(py::module_& m) {
  using py::arg;
  bind_dense<float>(m);
  bind_dense<double>(m);
  m.def("merge_repeated", either(&merged<float>, &merged<double>), arg("indptr").noconvert(),
        arg("indices").noconvert(), arg("values").noconvert(), arg("mean"),
        "Keep one entry of every cell, in place: the number of those left.");
  m.def("column_entries", &column_entries, arg("columns").noconvert(), arg("valid").noconvert(), arg("n_rows"),
        arg("single"), arg("n_threads"),
        "(indptr, indices, values) of columns with bits that say what is not null; None where a value is not finite.");
  bind_triplets<std::int32_t, float>(m);
  bind_triplets<std::int32_t, double>(m);
  bind_triplets<std::int64_t, float>(m);
  bind_triplets<std::int64_t, double>(m);
}

}  // namespace lacunar::bind
