#include "either.hpp"
#include "lacunar/observed/columns.hpp"

namespace lacunar::bind {
namespace {

template <class T>
py::tuple moments_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                     const Array<double>& weight, Offset n_cols, int n_threads) {
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_size(weight, rows.n_rows, "weight");
  Array<double> total(n_cols), mean(n_cols), variance(n_cols);
  {
    const double* w = weight.data();
    double *t = total.mutable_data(), *m = mean.mutable_data(), *v = variance.mutable_data();
    const Released nogil;
    column_moments(rows, w, t, m, v, n_threads);
  }
  return py::make_tuple(total, mean, variance);
}

template <class T, class Out>
bool standardised(const Array<T>& values, const Array<Index>& columns, const Array<double>& center,
                  const Array<double>& scale, double bound, Array<Out> out, int n_threads) {
  expect_size(columns, values.size(), "columns");
  expect_size(scale, center.size(), "scale");
  expect_size(out, values.size(), "out");
  const Columns by{center.data(), scale.data(), bound};
  const T* from = values.data();
  const Index* of = columns.data();
  Out* to = out.mutable_data();
  const Offset count = values.size();
  const Released nogil;
  return standardise(from, of, count, by, to, n_threads);
}

template <class T, class Out>
void bind_standardise(py::module_& m) {
  using py::arg;
  m.def("standardise", &standardised<T, Out>, arg("values").noconvert(), arg("columns").noconvert(),
        arg("center").noconvert(), arg("scale").noconvert(), arg("bound"), arg("out").noconvert(), arg("n_threads"),
        "Whether all are finite: every entry less its column's center, over its column's scale, clipped to +-bound.");
}

}  // namespace

void bind_columns(py::module_& m) {
  using py::arg;
  m.def("column_moments", either(&moments_of<float>, &moments_of<double>), arg("indptr").noconvert(),
        arg("indices").noconvert(), arg("values").noconvert(), arg("weight").noconvert(), arg("n_cols"),
        arg("n_threads"), "(total, mean, variance) of every column over its entries, weighted by rows.");
  bind_standardise<float, float>(m);
  bind_standardise<float, double>(m);
  bind_standardise<double, double>(m);
}

}  // namespace lacunar::bind
