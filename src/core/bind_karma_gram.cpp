#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "either.hpp"
#include "lacunar/gram/karma_gram.hpp"

namespace lacunar::bind {
namespace {

GramPath path_of(const std::string& method) {
  if (method == "auto") return GramPath::automatic;
  if (method == "dense") return GramPath::dense;
  if (method == "spmm") return GramPath::spmm;
  if (method == "inverted") return GramPath::inverted;
  throw std::invalid_argument("unknown method " + method);
}

const char* name_of(GramPath path) {
  return path == GramPath::dense ? "dense" : path == GramPath::spmm ? "spmm" : "inverted";
}

// The arrays of a call, as the core wants them. forms (q, 3) of coefficients and tables (q, n_max + 1), of the output's
// type.
template <class T>
GramTask<T> task_of(const Rows<T>& x, const Rows<T>& y, bool symmetric, const Array<T>& forms, const Array<T>& tables,
                    const std::optional<Array<T>>& row_scale, const std::optional<Array<T>>& col_scale) {
  GramTask<T> task{x, y, symmetric, {}, nullptr, nullptr, nullptr};
  const Offset q = forms.ndim() == 2 ? forms.shape(0) : 0;
  const Offset width = tables.ndim() == 2 ? tables.shape(1) : 0;
  expect_size(forms, {3, q}, "forms");
  expect_size(tables, {q, width}, "tables");
  if (width <= std::min(longest_of(x), longest_of(y)))
    throw std::invalid_argument("tables end before the longest row does");
  if (symmetric && (x.n_rows != y.n_rows || x.indices != y.indices))
    throw std::invalid_argument("symmetric, but the rows are not the same");
  if (row_scale) expect_size(*row_scale, {q, x.n_rows}, "row_scale"), task.row_scale = row_scale->data();
  if (col_scale) expect_size(*col_scale, {q, y.n_rows}, "col_scale"), task.col_scale = col_scale->data();
  for (Offset k = 0; k < q; ++k) {
    const T* form = forms.data() + 3 * k;
    task.forms.push_back({form[0], form[1], form[2], tables.data() + k * width});
  }
  return task;
}

template <class T>
using Scale = std::optional<Array<T>>;

template <class T>
std::string gram(const Array<Offset>& x_indptr, const Array<Index>& x_indices, const Array<T>& x_values,
                 const Array<Offset>& y_indptr, const Array<Index>& y_indices, const Array<T>& y_values, Offset n_cols,
                 bool symmetric, const Array<T>& forms, const Array<T>& tables, const Scale<T>& row_scale,
                 const Scale<T>& col_scale, Array<T>& out, const std::string& method, int n_threads) {
  auto task = task_of(rows_of(x_indptr, x_indices, x_values, n_cols), rows_of(y_indptr, y_indices, y_values, n_cols),
                      symmetric, forms, tables, row_scale, col_scale);
  expect_size(out, {static_cast<Offset>(task.forms.size()), task.x.n_rows, task.y.n_rows}, "out");
  task.out = out.mutable_data();
  const Released nogil;
  const GramPath named = path_of(method);
  const GramPath path = named == GramPath::automatic ? choose_gram_path(task.x, task.y) : named;
  karma_gram(task, path, n_threads);
  return name_of(path);
}

}  // namespace

void bind_karma_gram(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("karma_gram", either(&gram<float>, &gram<double>), exact("x_indptr"), exact("x_indices"), exact("x_values"),
        exact("y_indptr"), exact("y_indices"), exact("y_values"), arg("n_cols"), arg("symmetric"), exact("forms"),
        exact("tables"), exact("row_scale").none(true), exact("col_scale").none(true), exact("out"), arg("method"),
        arg("n_threads"), "Fill out (q, n, m) with q kernels from one pass over the pairs; returns the path taken.");
}

}  // namespace lacunar::bind
