#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "arrays.hpp"
#include "lacunar/primal.hpp"
#include "lacunar/primal_wide.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

// (gamma, n_cols, constant, indicator, q0, q1, q2, hash_bits)
using MapTuple = std::tuple<int, Offset, double, double, double, double, double, int>;

FeatureMap map_of(const MapTuple& t) {
  const FeatureMap map{
      std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t), {std::get<4>(t), std::get<5>(t), std::get<6>(t)},
      std::get<7>(t)};
  if (map.gamma < 1 || map.gamma > 3) throw std::invalid_argument("gamma must be 1, 2 or 3");
  int_of(map.n_cols, "n_cols");
  if (map.rows() >= (Offset{1} << 31)) throw std::invalid_argument("too many rows for the table");
  if (map.hash_bits < 0 || map.hash_bits > 40) throw std::invalid_argument("hash_bits must lie between 0 and 40");
  product_of({map.rows(), map.width()});
  return map;
}

void expect_whole(const FeatureMap& map) {
  if (map.gamma > 2 || map.hash_bits > 0)
    throw std::invalid_argument("blocks of rows need gamma 1 or 2 and a whole table");
}

template <class T>
struct Call {
  FeatureMap map;
  Rows<T> rows;
  Offset outputs;
  const double* row_scale;

  Call(const MapTuple& form, const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
       const std::optional<Array<double>>& scale, Offset n_outputs)
      : map(map_of(form)), rows(rows_of(indptr, indices, values, map.n_cols)), outputs(n_outputs), row_scale(nullptr) {
    if (outputs < 1) throw std::invalid_argument("no outputs");
    if (scale) expect_size(*scale, rows.n_rows, "row_scale"), row_scale = scale->data();
  }

  T* table(Array<T>& made) const {
    expect_size(made, {map.table_size(), outputs}, "table");
    return made.mutable_data();
  }
  double* per_row(Array<double>& made, Offset each, const char* name) const {
    expect_size(made, {rows.n_rows, each}, name);
    return made.mutable_data();
  }
  const double* per_row(const Array<double>& made, Offset each, const char* name) const {
    expect_size(made, {rows.n_rows, each}, name);
    return made.data();
  }
};

template <class T>
Offset primal_descend_of(const MapTuple& form, const Array<Offset>& indptr, const Array<Index>& indices,
                         const Array<T>& values, const std::optional<Array<double>>& row_scale,
                         const Array<double>& curvature, const Array<double>& target,
                         const std::optional<Array<double>>& weight, const Array<Offset>& order,
                         const std::string& loss, double epsilon, double rho, const std::string& eta, double eta0,
                         double power, bool averaging_by_step, Array<T>& first, std::optional<Array<T>>& second,
                         Array<double>& clock, Array<double>& decisions) {
  const Offset outputs = target.ndim() == 2 ? target.shape(1) : 1;
  const Call<T> call(form, indptr, indices, values, row_scale, outputs);
  const StepRule rule{loss_of(loss), epsilon, rho, kind_of(eta), eta0, power, averaging_by_step};
  expect_size(clock, kStepClock, "clock");
  expect_below(order, call.rows.n_rows, "order");
  const double* y = call.per_row(target, outputs, "target");
  const double* k = is_quadratic(rule.loss) ? call.per_row(curvature, 1, "curvature") : nullptr;
  const double* mass = weight ? call.per_row(*weight, 1, "weight") : nullptr;
  double* f = call.per_row(decisions, outputs, "decisions");
  T* tables[2] = {call.table(first), second ? call.table(*second) : nullptr};
  double* times = clock.mutable_data();
  const py::gil_scoped_release nogil;
  return primal_descend(call.map, call.rows, call.row_scale, k, y, mass, outputs, order.data(),
                        static_cast<Offset>(order.size()), rule, tables[0], tables[1], times, f);
}

template <class T>
Offset ascend(const MapTuple& form, const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
              const std::optional<Array<double>>& row_scale, const Array<double>& curvature,
              const Array<double>& target, const Array<double>& upper, const Array<Offset>& order,
              const std::string& loss, double epsilon, Array<T>& table, Array<double>& beta, Array<Index>& idle,
              Offset sweep, Array<double>& gap) {
  const Offset outputs = target.ndim() == 2 ? target.shape(1) : 1;
  const Call<T> call(form, indptr, indices, values, row_scale, outputs);
  const PointLoss kind = loss_of(loss);
  const double* y = call.per_row(target, outputs, "target");
  const double* k = call.per_row(curvature, 1, "curvature");
  const double* most = call.per_row(upper, 1, "upper");
  double* b = call.per_row(beta, outputs, "beta");
  expect_size(gap, outputs, "gap");
  expect_below(order, call.rows.n_rows, "order");
  T* weights = call.table(table);
  expect_size(idle, call.rows.n_rows, "idle");
  const Ascent ascent{k, y, most, b, idle.mutable_data(), sweep, gap.mutable_data()};
  const py::gil_scoped_release nogil;
  return primal_ascend(call.map, call.rows, call.row_scale, ascent, outputs, order.data(),
                       static_cast<Offset>(order.size()), kind, epsilon, weights);
}

template <class T>
void primal_decide_of(const MapTuple& form, const Array<Offset>& indptr, const Array<Index>& indices,
                      const Array<T>& values, const std::optional<Array<double>>& row_scale, Array<T>& table,
                      Array<double>& decisions, int n_threads, bool blocked) {
  const Offset outputs = decisions.ndim() == 2 ? decisions.shape(1) : 1;
  const Call<T> call(form, indptr, indices, values, row_scale, outputs);
  double* f = call.per_row(decisions, outputs, "decisions");
  const T* weights = call.table(table);
  if (blocked) expect_whole(call.map);
  const py::gil_scoped_release nogil;
  if (blocked)
    wide_decide(call.map, call.rows, call.row_scale, outputs, weights, f, n_threads);
  else
    primal_decide(call.map, call.rows, call.row_scale, outputs, weights, f, n_threads);
}

// An interrupt leaves some of the rows in the tables: the caller takes them back.
template <class T>
void add(const MapTuple& form, const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
         const std::optional<Array<double>>& row_scale, const Array<double>& first_coef,
         const Array<double>& second_coef, Array<T>& first, std::optional<Array<T>>& second, int n_threads) {
  const Offset outputs = first_coef.ndim() == 2 ? first_coef.shape(1) : 1;
  const Call<T> call(form, indptr, indices, values, row_scale, outputs);
  const Addition<T> one{call.table(first), call.per_row(first_coef, outputs, "first_coef")};
  const Addition<T> other{second ? call.table(*second) : nullptr, call.per_row(second_coef, outputs, "second_coef")};
  expect_whole(call.map);
  const py::gil_scoped_release nogil;
  wide_add(call.map, call.rows, call.row_scale, outputs, one, other, n_threads);
}

// Sum over rows and outputs of the coordinates' gaps and of the losses, for one output after the other: (2, outputs).
Array<double> gaps(const Array<double>& beta, const Array<double>& value, const Array<double>& target,
                   const Array<double>& upper, const std::string& loss, double epsilon) {
  const Offset n = static_cast<Offset>(upper.size()), outputs = n > 0 ? static_cast<Offset>(target.size()) / n : 1;
  expect_size(beta, {n, outputs}, "beta");
  expect_size(value, {n, outputs}, "value");
  expect_size(target, {n, outputs}, "target");
  const PointLoss kind = loss_of(loss);
  const double *b = beta.data(), *f = value.data(), *y = target.data(), *most = upper.data();
  std::vector<double> sums;
  {
    const py::gil_scoped_release nogil;
    sums = coordinate_sums(b, f, y, most, n, outputs, kind, epsilon);
  }
  return to_array(sums);
}

template <class T>
void bind_primal_of(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("primal_descend", &primal_descend_of<T>, arg("form"), exact("indptr"), exact("indices"), exact("values"),
        exact("row_scale").none(true), exact("curvature"), exact("target"), exact("weight").none(true), exact("order"),
        arg("loss"), arg("epsilon"), arg("rho"), arg("eta"), arg("eta0"), arg("power"), arg("averaging_by_step"),
        exact("first"), exact("second").none(true), exact("clock"), exact("decisions"),
        "Algorithm 1 through the weight table; the row at which a value is not finite, or -1.");
  m.def("primal_ascend", &ascend<T>, arg("form"), exact("indptr"), exact("indices"), exact("values"),
        exact("row_scale").none(true), exact("curvature"), exact("target"), exact("upper"), exact("order"), arg("loss"),
        arg("epsilon"), exact("table"), exact("beta"), exact("idle"), arg("sweep"), exact("gap"),
        "One sweep of dual coordinate ascent.");
  m.def("primal_decide", &primal_decide_of<T>, arg("form"), exact("indptr"), exact("indices"), exact("values"),
        exact("row_scale").none(true), exact("table"), exact("decisions"), arg("n_threads"), arg("blocked"),
        "Values of a weight table, row by row or by blocks of rows.");
  m.def("primal_add", &add<T>, arg("form"), exact("indptr"), exact("indices"), exact("values"),
        exact("row_scale").none(true), exact("first_coef"), exact("second_coef"), exact("first"),
        exact("second").none(true), arg("n_threads"), "Adds rows to the weight tables, by blocks.");
}

}  // namespace

void bind_primal(py::module_& m) {
  using py::arg;
  bind_primal_of<float>(m);
  bind_primal_of<double>(m);
  m.def("coordinate_sums", &gaps, arg("beta").noconvert(), arg("value").noconvert(), arg("target").noconvert(),
        arg("upper").noconvert(), arg("loss"), arg("epsilon"),
        "(2 * outputs): gaps of the coordinates, then losses, summed over rows.");
  m.def(
      "primal_table_shape",
      [](const MapTuple& form) {
        const auto map = map_of(form);
        return std::make_tuple(map.rows(), map.width(), map.table_size());
      },
      arg("form"), "(rows, width, entries) of the table of one output.");
}

}  // namespace lacunar::bind
