#include <cstdint>
#include <optional>

#include "arrays.hpp"
#include "lacunar/sums/forest.hpp"
#include "lacunar/sums/symmetric.hpp"

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

// The trees of a forest, checked and packed once. Their arrays must not be written to.
class BoundForest {
 public:
  BoundForest(const Array<Index>& roots, const Array<Index>& outputs, const Array<Index>& feature,
              const Array<double>& threshold, const Array<Index>& left, const Array<Index>& right,
              const Array<unsigned char>& missing_left, const Array<Index>& category_set,
              const Array<std::uint32_t>& sets, const Array<float>& values, Offset n_cols, Offset n_outputs)
      : n_cols_(n_cols), n_outputs_(n_outputs), arrays_(py::make_tuple(roots, outputs, sets, values)) {
    expect_matrix(values, "values");
    const Offset nodes = feature.size(), width = values.shape(1);
    expect_size(outputs, roots.size(), "outputs");
    for (const py::array* part : {static_cast<const py::array*>(&threshold), static_cast<const py::array*>(&left),
                                  static_cast<const py::array*>(&right), static_cast<const py::array*>(&missing_left),
                                  static_cast<const py::array*>(&category_set)})
      expect_size(*part, nodes, "a part of the nodes");
    expect_size(sets, {sets.size() / 8, 8}, "sets");
    expect_below(roots, nodes, "roots");
    expect_below(outputs, n_outputs - width + 1, "outputs");
    expect_trees(feature, left, right, n_cols, values.shape(0));
    for (py::ssize_t k = 0; k < category_set.size(); ++k)
      if (category_set.data()[k] >= sets.size() / 8)
        throw std::invalid_argument("a node names a set that is not there");
    packed_.emplace(Forest{roots.data(), outputs.data(), static_cast<Offset>(roots.size()), nodes, feature.data(),
                           threshold.data(), left.data(), right.data(), missing_left.data(), category_set.data(),
                           sets.data(), values.data(), width});
  }

  void add(const Array<double>& rows, Array<double>& out, int n_threads) const {
    expect_matrix(rows, "rows");
    const Offset n = rows.shape(0);
    expect_size(rows, {n, n_cols_}, "rows");
    expect_size(out, {n, n_outputs_}, "out");
    const double* from = rows.data();
    double* to = out.mutable_data();
    const Released nogil;
    packed_->add(from, n, n_cols_, to, n_outputs_, n_threads);
  }

 private:
  Offset n_cols_, n_outputs_;
  py::tuple arrays_;  // that the packed trees point to
  std::optional<PackedForest> packed_;
};

py::tuple symmetric_tree(const Array<unsigned char>& codes, const Array<Index>& n_codes,
                         const Array<unsigned char>& categorical, const Array<double>& pairs, double penalty,
                         Offset depth) {
  expect_matrix(codes, "codes");
  const Offset n_cols = codes.shape(0), n = codes.shape(1);
  if (n_cols < 1 || depth < 1 || depth > 16) throw std::invalid_argument("a tree needs columns, and 1 to 16 levels");
  expect_size(n_codes, n_cols, "n_codes");
  expect_size(categorical, n_cols, "categorical");
  if (pairs.ndim() != 3) throw std::invalid_argument("pairs is not of three dimensions");
  expect_size(pairs, {n, pairs.shape(1), 2}, "pairs");
  for (Offset j = 0; j < n_cols; ++j)
    for (Offset i = 0; i < n; ++i)
      if (codes.data()[j * n + i] >= n_codes.data()[j]) throw std::invalid_argument("codes must lie below n_codes");
  Array<Index> columns(depth), of_columns(depth), leaf(n);
  const CodedRows rows{codes.data(), n_codes.data(), categorical.data(), n, n_cols};
  const double* from = pairs.data();
  const Offset n_outputs = pairs.shape(1);
  Index *to_columns = columns.mutable_data(), *to_codes = of_columns.mutable_data(), *to_leaf = leaf.mutable_data();
  {
    const Released nogil;
    grow_symmetric_tree(rows, from, n_outputs, penalty, depth, to_columns, to_codes, to_leaf);
  }
  return py::make_tuple(columns, of_columns, leaf);
}

}  // namespace

void bind_forest(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* argument) { return arg(argument).noconvert(); };
  py::class_<BoundForest>(m, "Forest", plain_type(), "Trees whose nodes are packed once, for any number of calls.")
      .def(py::init<const Array<Index>&, const Array<Index>&, const Array<Index>&, const Array<double>&,
                    const Array<Index>&, const Array<Index>&, const Array<unsigned char>&, const Array<Index>&,
                    const Array<std::uint32_t>&, const Array<float>&, Offset, Offset>(),
           exact("roots"), exact("outputs"), exact("feature"), exact("threshold"), exact("left"), exact("right"),
           exact("missing_left"), exact("category_set"), exact("sets"), exact("values"), arg("n_cols"),
           arg("n_outputs"))
      .def("add", &BoundForest::add, exact("rows"), exact("out"), arg("n_threads"),
           "Adds to out (n, n_outputs) the values of the leaves that rows (n, n_cols) reach.");
  m.def("symmetric_tree", &symmetric_tree, arg("codes").noconvert(), arg("n_codes").noconvert(),
        arg("categorical").noconvert(), arg("pairs").noconvert(), arg("penalty"), arg("depth"),
        "Columns (depth) and codes (depth) of the splits of a symmetric tree, root first, and the leaf (n) of every "
        "row.");
}

}  // namespace lacunar::bind
