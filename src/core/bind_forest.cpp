#include <cstdint>

#include "arrays.hpp"
#include "lacunar/sums/forest.hpp"

namespace lacunar::bind {
namespace {

// Nodes come out of a model file: children lie behind their node, so that every walk ends, and leaves have values.
void expect_trees(const Array<Index>& feature, const Array<Index>& left, const Array<Index>& right, Offset n_cols,
                  Offset n_leaves) {
  const Offset n = feature.size();
  for (Offset node = 0; node < n; ++node) {
    const Index at = feature.data()[node], l = left.data()[node], r = right.data()[node];
    const bool leaf = at < 0;
    if (at >= n_cols || (leaf && (l < 0 || l >= n_leaves)) || (!leaf && (l <= node || l >= n || r <= node || r >= n)))
      throw std::invalid_argument("node " + std::to_string(node) +
                                  " of the trees does not lead to later nodes or to a leaf");
  }
}

void add_forest_to(const Array<double>& rows, const Array<Index>& roots, const Array<Index>& outputs,
                   const Array<Index>& feature, const Array<double>& threshold, const Array<Index>& left,
                   const Array<Index>& right, const Array<unsigned char>& missing_left,
                   const Array<Index>& category_set, const Array<std::uint32_t>& sets, const Array<float>& values,
                   Array<double>& out, int n_threads) {
  expect_matrix(rows, "rows");
  expect_matrix(values, "values");
  expect_matrix(out, "out");
  expect_size(out, {rows.shape(0), out.shape(1)}, "out");
  const Offset nodes = feature.size(), n_cols = rows.shape(1), width = values.shape(1);
  expect_size(outputs, roots.size(), "outputs");
  for (const py::array* part : {static_cast<const py::array*>(&threshold), static_cast<const py::array*>(&left),
                                static_cast<const py::array*>(&right), static_cast<const py::array*>(&missing_left),
                                static_cast<const py::array*>(&category_set)})
    expect_size(*part, nodes, "a part of the nodes");
  expect_size(sets, {sets.size() / 8, 8}, "sets");
  expect_below(roots, nodes, "roots");
  expect_below(outputs, out.shape(1) - width + 1, "outputs");
  expect_trees(feature, left, right, n_cols, values.shape(0));
  for (py::ssize_t k = 0; k < category_set.size(); ++k)
    if (category_set.data()[k] >= sets.size() / 8) throw std::invalid_argument("a node names a set that is not there");
  const Forest forest{roots.data(),
                      outputs.data(),
                      static_cast<Offset>(roots.size()),
                      nodes,
                      feature.data(),
                      threshold.data(),
                      left.data(),
                      right.data(),
                      missing_left.data(),
                      category_set.data(),
                      sets.data(),
                      values.data(),
                      width};
  const double* from = rows.data();
  double* to = out.mutable_data();
  const Offset n = rows.shape(0), n_outputs = out.shape(1);
  const Released nogil;
  add_forest(forest, from, n, n_cols, to, n_outputs, n_threads);
}

}  // namespace

void bind_forest(py::module_& m) {
  using py::arg;
  m.def("add_forest", &add_forest_to, arg("rows").noconvert(), arg("roots").noconvert(), arg("outputs").noconvert(),
        arg("feature").noconvert(), arg("threshold").noconvert(), arg("left").noconvert(), arg("right").noconvert(),
        arg("missing_left").noconvert(), arg("category_set").noconvert(), arg("sets").noconvert(),
        arg("values").noconvert(), arg("out").noconvert(), arg("n_threads"),
        "Adds to out (n, n_outputs) the values of the leaves that rows (n, n_cols) reach.");
}

}  // namespace lacunar::bind
