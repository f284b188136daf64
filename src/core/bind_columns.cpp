#include "arrays.hpp"
#include "lacunar/columns.hpp"

namespace lacunar::bind {
namespace {

template <class T>
py::tuple moments_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                     const Array<double>& weight, Offset n_cols) {
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_size(weight, rows.n_rows, "weight");
  Array<double> total(n_cols), mean(n_cols), variance(n_cols);
  {
    const double* w = weight.data();
    double *t = total.mutable_data(), *m = mean.mutable_data(), *v = variance.mutable_data();
    const py::gil_scoped_release nogil;
    column_moments(rows, w, t, m, v);
  }
  return py::make_tuple(total, mean, variance);
}

template <class T, class Out>
bool standardised(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                  const Array<double>& center, const Array<double>& scale, Offset n_cols, Array<Out> out) {
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_size(center, n_cols, "center");
  expect_size(scale, n_cols, "scale");
  expect_size(out, values.size(), "out");
  const double *c = center.data(), *s = scale.data();
  Out* o = out.mutable_data();
  const py::gil_scoped_release nogil;
  return standardise(rows, c, s, o);
}

template <class T, class Out>
void bind_standardise(py::module_& m) {
  using py::arg;
  m.def("standardise", &standardised<T, Out>, arg("indptr").noconvert(), arg("indices").noconvert(),
        arg("values").noconvert(), arg("center").noconvert(), arg("scale").noconvert(), arg("n_cols"),
        arg("out").noconvert(),
        "Whether all are finite: every entry less its column's center, over its column's scale, written to out.");
}

template <class T>
void bind_columns_of(py::module_& m) {
  using py::arg;
  m.def("column_moments", &moments_of<T>, arg("indptr").noconvert(), arg("indices").noconvert(),
        arg("values").noconvert(), arg("weight").noconvert(), arg("n_cols"),
        "(total, mean, variance) of every column over its entries, weighted by rows.");
}

}  // namespace

void bind_columns(py::module_& m) {
  bind_columns_of<float>(m);
  bind_columns_of<double>(m);
  bind_standardise<float, float>(m);
  bind_standardise<float, double>(m);
  bind_standardise<double, double>(m);
}

}  // namespace lacunar::bind
