#include "arrays.hpp"
#include "lacunar/meg/factor_solve.hpp"
#include "lacunar/meg/selected_inverse.hpp"

namespace lacunar::bind {
namespace {

// L comes from a factorisation, not from an `Observed`, so that all of it is looked at: its columns, as rows of
// entries.
Rows<double> lower_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<double>& values, Offset n) {
  expect_size(indptr, {n + 1}, "indptr");
  const auto lower = rows_of(indptr, indices, values, n);
  for (Offset j = 0; j < n; ++j) {
    Offset before = j;
    for (Offset p = lower.offsets[j]; p < lower.offsets[j + 1]; before = lower.indices[p++])
      if (lower.indices[p] <= before || lower.indices[p] >= n)
        throw std::invalid_argument("the rows of every column of L must ascend below its diagonal");
  }
  return lower;
}

Array<double> selected_inverse_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<double>& values,
                                  const Array<double>& pivots, const Array<double>& tail) {
  const Offset n = pivots.size();
  if (tail.ndim() != 2 || tail.shape(0) != tail.shape(1) || tail.shape(0) > n)
    throw std::invalid_argument("tail is not a square block of at most n columns");
  const auto lower = lower_of(indptr, indices, values, n);
  Array<double> diagonal(n);
  {
    const double *p = pivots.data(), *t = tail.data();
    double* out = diagonal.mutable_data();
    const Released nogil;
    selected_inverse(lower, p, t, tail.shape(0), out);
  }
  return diagonal;
}

Array<double> factor_solve_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<double>& values,
                              const Array<double>& pivots, const Array<Index>& place, const Array<double>& right) {
  const Offset n = pivots.size();
  expect_size(place, n, "place");
  expect_below(place, n, "place");
  if (right.ndim() != 2 || right.shape(0) != n) throw std::invalid_argument("right is not a table of a row a pivot");
  const auto lower = lower_of(indptr, indices, values, n);
  Array<double> out({right.shape(0), right.shape(1)});
  {
    const double *p = pivots.data(), *b = right.data();
    const Index* at = place.data();
    double* to = out.mutable_data();
    const Released nogil;
    factor_solve(lower, p, at, b, right.shape(1), to);
  }
  return out;
}

}  // namespace

void bind_selected_inverse(py::module_& m) {
  using py::arg;
  m.def(
      "selected_inverse", &selected_inverse_of, arg("indptr").noconvert(), arg("indices").noconvert(),
      arg("values").noconvert(), arg("pivots").noconvert(), arg("tail").noconvert(),
      "Diagonal of the inverse of L diag(pivots) L^T; L by columns below its diagonal, tail the inverse's last block.");
  m.def("factor_solve", &factor_solve_of, arg("indptr").noconvert(), arg("indices").noconvert(),
        arg("values").noconvert(), arg("pivots").noconvert(), arg("place").noconvert(), arg("right").noconvert(),
        "A^-1 right (n, k) by L diag(pivots) L^T, whose row place[i] is row i of A; L by columns below its diagonal.");
}

}  // namespace lacunar::bind
