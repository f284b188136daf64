#include "arrays.hpp"
#include "lacunar/selected_inverse.hpp"

namespace lacunar::bind {
namespace {

Array<double> selected_inverse_of(const Array<Offset>& indptr, const Array<Index>& indices,
                                  const Array<double>& values, const Array<double>& pivots,
                                  const Array<double>& tail) {
  const Offset n = pivots.size();
  expect_size(indptr, n + 1, "indptr");
  if (tail.ndim() != 2 || tail.shape(0) != tail.shape(1) || tail.shape(0) > n)
    throw std::invalid_argument("tail is not a square block of at most n columns");
  const auto lower = rows_of(indptr, indices, values, n);
  Array<double> diagonal(n);
  {
    const double *p = pivots.data(), *t = tail.data();
    double* out = diagonal.mutable_data();
    const py::gil_scoped_release nogil;
    selected_inverse(lower, p, t, tail.shape(0), out);
  }
  return diagonal;
}

}  // namespace

void bind_selected_inverse(py::module_& m) {
  using py::arg;
  m.def("selected_inverse", &selected_inverse_of, arg("indptr").noconvert(), arg("indices").noconvert(),
        arg("values").noconvert(), arg("pivots").noconvert(), arg("tail").noconvert(),
        "Diagonal of the inverse of L diag(pivots) L^T; L by columns below its diagonal, tail the inverse's last block.");
}

}  // namespace lacunar::bind
