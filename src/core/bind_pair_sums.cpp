#include <pybind11/stl.h>

#include <algorithm>
#include <optional>

#include "either.hpp"
#include "lacunar/sums/pair_sums.hpp"

namespace lacunar::bind {
namespace {

template <class N>
N* table_of(std::optional<Array<N>>& table, Offset n_cols, const char* name) {
  if (!table) return nullptr;
  expect_size(*table, {n_cols, n_cols}, name);
  return table->mutable_data();  // which refuses what is not writeable
}

template <class T>
void pair_sums_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                  const Array<double>& shift, Array<double> product, std::optional<Array<Offset>> count,
                  std::optional<Array<double>> cross, Offset stripe, int n_threads) {
  const Offset n_cols = shift.size();
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_size(product, {n_cols, n_cols}, "product");
  const PairTables out{product.mutable_data(), table_of(count, n_cols, "count"), table_of(cross, n_cols, "cross")};
  const double* c = shift.data();
  const Released nogil;
  column_pair_sums(rows, c, std::clamp<Offset>(stripe, 1, std::max<Offset>(n_cols, 1)), out, n_threads);
}

template <class T>
void sums_by_column_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                       const Array<Offset>& column_offsets, const Array<Offset>& column_rows,
                       const Array<Offset>& positions, const Array<double>& shift, Array<double> product,
                       std::optional<Array<Offset>> count, std::optional<Array<double>> cross, int n_threads) {
  const Offset n_cols = shift.size();
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_size(column_offsets, n_cols + 1, "column_offsets");
  expect_size(column_rows, values.size(), "column_rows");
  expect_size(positions, values.size(), "positions");
  expect_offsets(column_offsets.data(), n_cols, values.size(), "column_offsets");
  expect_size(product, {n_cols, n_cols}, "product");
  const ColumnView columns{column_offsets.data(), column_rows.data(), positions.data()};
  const PairTables out{product.mutable_data(), table_of(count, n_cols, "count"), table_of(cross, n_cols, "cross")};
  const double* c = shift.data();
  const Released nogil;
  column_pair_sums(rows, columns, c, out, n_threads);
}

// -1 for a column that is left out.
void expect_places(const Array<Index>& place, Offset n_cols, Offset n_places) {
  expect_size(place, n_cols, "place");
  const Index *first = place.data(), *last = first + n_cols;
  if (!std::all_of(first, last, [n_places](Index at) { return at >= -1 && at < n_places; }))
    throw py::value_error("place must hold rows of count, or -1");
}

template <class T>
void counts_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
               std::optional<Array<Index>> place, Array<Offset> count, Offset n_cols, int n_threads) {
  const auto rows = rows_of(indptr, indices, values, n_cols);
  const Offset n_places = place && count.ndim() == 2 ? static_cast<Offset>(count.shape(0)) : n_cols;
  expect_size(count, {n_places, n_places}, "count");
  if (place) expect_places(*place, n_cols, n_places);
  const Index* at = place ? place->data() : nullptr;
  Offset* to = count.mutable_data();
  const Released nogil;
  column_pair_counts(rows, at, n_places, to, n_threads);
}

template <class N>
void mirror(Array<N> table, int n_threads) {
  const Offset n = table.ndim() == 2 ? static_cast<Offset>(table.shape(0)) : 0;
  expect_size(table, {n, n}, "table");
  N* to = table.mutable_data();
  const Released nogil;
  mirror_upper(to, n, n_threads);
}

}  // namespace

void bind_pair_sums(py::module_& m) {
  using py::arg;
  m.def("column_pair_sums", either(&pair_sums_of<float>, &pair_sums_of<double>), arg("indptr").noconvert(),
        arg("indices").noconvert(), arg("values").noconvert(), arg("shift").noconvert(), arg("product").noconvert(),
        arg("count").noconvert().none(true), arg("cross").noconvert().none(true), arg("stripe"), arg("n_threads"),
        "Adds to the upper triangles of product and count, and to cross, sums over pairs of observed entries.");
  m.def("column_pair_sums_by_column", either(&sums_by_column_of<float>, &sums_by_column_of<double>),
        arg("indptr").noconvert(), arg("indices").noconvert(), arg("values").noconvert(),
        arg("column_offsets").noconvert(), arg("column_rows").noconvert(), arg("positions").noconvert(),
        arg("shift").noconvert(), arg("product").noconvert(), arg("count").noconvert().none(true),
        arg("cross").noconvert().none(true), arg("n_threads"),
        "The same a row of the tables at a time, from the rows of each column's entries.");
  m.def(
      "column_pair_counts", either(&counts_of<float>, &counts_of<double>), arg("indptr").noconvert(),
      arg("indices").noconvert(), arg("values").noconvert(), arg("place").noconvert().none(true),
      arg("count").noconvert(), arg("n_cols"), arg("n_threads"),
      "Adds to the upper triangle of count, at the places of columns (None: all), the rows that observe both of two.");
  m.def("mirror_upper", &mirror<double>, py::arg("table").noconvert(), py::arg("n_threads"),
        "The upper triangle of a square table written to the lower.");
  m.def("mirror_upper", &mirror<Offset>, py::arg("table").noconvert(), py::arg("n_threads"));
}

}  // namespace lacunar::bind
