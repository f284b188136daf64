#include "lacunar/primal/primal.hpp"
#include "lacunar/primal/primal_wide.hpp"
#include "either.hpp"
#include "feature_map.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

template <class T>
T* table_of(Array<T>& table, const FeatureMap& map, Offset outputs) {
  expect_size(table, {map.table_size(), outputs}, "table");
  return table.mutable_data();
}

template <class T>
Offset ascend(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, const py::dict& form,
              const Numbers64& scale, const Array<double>& target, const Array<double>& upper,
              const Array<double>& curvature, const Array<Offset>& order, const std::string& loss, double epsilon,
              Array<T>& table, Array<double>& beta, Array<Index>& idle, Offset sweep, Array<double>& gap,
              int n_threads) {
  const FeatureMap map = map_of(form);
  const auto rows = rows_of(indptr, indices, values, map.n_cols);
  const auto training = training_of(rows, scale, target, upper, curvature, order);
  const PointLoss& kind = loss_with(&PointLoss::has_dual, loss, "dual");
  expect_size(beta, {rows.n_rows, training.outputs}, "beta");
  expect_size(gap, training.outputs, "gap");
  expect_size(idle, rows.n_rows, "idle");
  T* weights = table_of(table, map, training.outputs);
  const Ascent ascent{beta.mutable_data(), idle.mutable_data(), sweep, gap.mutable_data()};
  const Released nogil;
  return primal_ascend(map, training, ascent, kind, epsilon, weights, n_threads);
}

template <class T>
void decide(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, const py::dict& form,
            const Numbers64& row_scale, Array<T>& table, Array<double>& decisions, int n_threads, bool blocked) {
  const FeatureMap map = map_of(form);
  const auto rows = rows_of(indptr, indices, values, map.n_cols);
  const Offset outputs = decisions.ndim() == 2 ? decisions.shape(1) : 1;
  if (outputs < 1) throw std::invalid_argument("no outputs");
  expect_size(decisions, {rows.n_rows, outputs}, "decisions");
  const double* scale = numbers_of(row_scale, rows.n_rows, 1, "row_scale");
  double* f = decisions.mutable_data();
  const T* weights = table_of(table, map, outputs);
  if (blocked) expect_whole(map);
  const Released nogil;
  if (blocked)
    wide_decide(map, rows, scale, outputs, weights, f, n_threads);
  else
    primal_decide(map, rows, scale, outputs, weights, f, n_threads);
}

// Sum over rows and outputs of the coordinates' gaps and of the losses, for one output after the other: (2, outputs).
Array<double> gaps(const Array<double>& beta, const Array<double>& value, const Array<double>& target,
                   const Array<double>& upper, const std::string& loss, double epsilon) {
  const Offset n = static_cast<Offset>(upper.size()), outputs = n > 0 ? static_cast<Offset>(target.size()) / n : 1;
  expect_size(beta, {n, outputs}, "beta");
  expect_size(value, {n, outputs}, "value");
  expect_size(target, {n, outputs}, "target");
  const PointLoss& kind = loss_with(&PointLoss::has_dual, loss, "dual");
  const double *b = beta.data(), *f = value.data(), *y = target.data(), *most = upper.data();
  std::vector<double> sums;
  {
    const Released nogil;
    sums = coordinate_sums(b, f, y, most, n, outputs, kind, epsilon);
  }
  return to_array(sums);
}

py::frozenset pieces_of(const PointLoss& loss) {
  py::set pieces;
  if (loss.slope != nullptr) pieces.add("slope");
  if (loss.curvature > 0) pieces.add("curvature");
  if (loss.has_kink) pieces.add("kink");
  if (loss.has_dual) pieces.add("dual");
  if (loss.has_gram_dual) pieces.add("gram_dual");
  if (loss.has_closed_form) pieces.add("closed_form");
  return py::frozenset(pieces);
}

Array<double> values_of(const std::string& loss, const Array<double>& value, const Array<double>& target,
                        double epsilon) {
  const Offset n = static_cast<Offset>(value.size());
  expect_size(target, n, "target");
  Array<double> out(n);
  loss_values(loss_of(loss), value.data(), target.data(), n, epsilon, out.mutable_data());
  return out;
}

}  // namespace

void bind_primal(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("primal_ascend", either(&ascend<float>, &ascend<double>), exact("indptr"), exact("indices"), exact("values"),
        arg("form"), exact("scale").none(true), exact("target"), exact("upper"), exact("curvature"), exact("order"),
        arg("loss"), arg("epsilon"), exact("table"), exact("beta"), exact("idle"), arg("sweep"), exact("gap"),
        arg("n_threads"), "One sweep of dual coordinate ascent.");
  m.def("primal_decide", either(&decide<float>, &decide<double>), exact("indptr"), exact("indices"), exact("values"),
        arg("form"), exact("row_scale").none(true), exact("table"), exact("decisions"), arg("n_threads"),
        arg("blocked"), "Values of a weight table, row by row or by blocks of rows.");
  m.def("coordinate_sums", &gaps, arg("beta").noconvert(), arg("value").noconvert(), arg("target").noconvert(),
        arg("upper").noconvert(), arg("loss"), arg("epsilon"),
        "(2 * outputs): gaps of the coordinates, then losses, summed over rows.");
  m.def("loss_values", &values_of, arg("loss"), arg("value").noconvert(), arg("target").noconvert(), arg("epsilon"),
        "The loss of every value, in one dimension.");
  py::dict losses;
  for (const PointLoss& loss : all_losses()) losses[py::str(std::string(loss.name))] = pieces_of(loss);
  m.attr("LOSSES") = losses;  // name -> what solvers may ask for
  m.def(
      "primal_table_shape",
      [](const py::dict& form) {
        const auto map = map_of(form);
        return std::make_tuple(map.rows(), map.width(), map.table_size());
      },
      arg("form"), "(rows, width, entries) of the table of one output.");
}

}  // namespace lacunar::bind
