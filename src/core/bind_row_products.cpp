#include "either.hpp"
#include "lacunar/sums/row_products.hpp"

namespace lacunar::bind {
namespace {

template <class T>
Array<double> gram_product_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                              const Array<double>& v, int n_threads) {
  if (v.ndim() != 2) throw std::invalid_argument("v must have two dimensions");
  const Offset n_cols = v.shape(0);
  const int width = int_of(v.shape(1), "the width of v");
  const auto rows = rows_of(indptr, indices, values, n_cols);
  Array<double> out({v.shape(0), v.shape(1)});
  {
    const double* from = v.data();
    double* to = out.mutable_data();
    const Released nogil;
    column_gram_product(rows, from, width, to, n_threads);
  }
  return out;
}

template <class T>
Array<double> row_product_of(const Array<T>& a, const Array<double>& b, int n_threads) {
  if (a.ndim() != 2 || b.ndim() != 2 || a.shape(1) != b.shape(0))
    throw std::invalid_argument("a (n, depth) and b (depth, width) must have a depth in common");
  Array<double> out({a.shape(0), b.shape(1)});
  const T* from = a.data();
  const double* with = b.data();
  double* to = out.mutable_data();
  const Offset n = a.shape(0), depth = a.shape(1), width = b.shape(1);
  const Released nogil;
  row_product(from, n, depth, with, width, to, n_threads);
  return out;
}

}  // namespace

void bind_row_products(py::module_& m) {
  using py::arg;
  m.def("column_gram_product", either(&gram_product_of<float>, &gram_product_of<double>), arg("indptr").noconvert(),
        arg("indices").noconvert(), arg("values").noconvert(), arg("v").noconvert(), arg("n_threads"),
        "X^T X v (n_cols, width) of the zero-filled rows, in one pass over them.");
  m.def("row_product", either(&row_product_of<float>, &row_product_of<double>), arg("a").noconvert(),
        arg("b").noconvert(), arg("n_threads"), "a b, every row by itself: its bits do not depend on the other rows.");
}

}  // namespace lacunar::bind
