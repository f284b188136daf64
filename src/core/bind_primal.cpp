#include <array>

#include "lacunar/primal/primal.hpp"
#include "lacunar/primal/primal_wide.hpp"
#include "either.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

FeatureMap map_of(const py::dict& options) {
  const auto weight = option<std::array<double, 3>>(options, "weight");
  const FeatureMap map{option<int>(options, "gamma"),       option<Offset>(options, "n_cols"),
                       option<double>(options, "constant"), option<double>(options, "indicator"),
                       {weight[0], weight[1], weight[2]},   option<int>(options, "hash_bits")};
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
T* table_of(Array<T>& table, const FeatureMap& map, Offset outputs) {
  expect_size(table, {map.table_size(), outputs}, "table");
  return table.mutable_data();
}

// Rows that meet a table, and what they are multiplied by.
template <class T>
struct Call {
  FeatureMap map;
  Rows<T> rows;
  Offset outputs;
  const double* row_scale;

  Call(const py::dict& form, const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
       const std::optional<Array<double>>& scale, Offset n_outputs)
      : map(map_of(form)), rows(rows_of(indptr, indices, values, map.n_cols)), outputs(n_outputs), row_scale(nullptr) {
    if (outputs < 1) throw std::invalid_argument("no outputs");
    if (scale) expect_size(*scale, rows.n_rows, "row_scale"), row_scale = scale->data();
  }

  const double* per_row(const Array<double>& array, const char* name) const {
    expect_size(array, {rows.n_rows, outputs}, name);
    return array.data();
  }
};

template <class T>
Offset primal_descend_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                         const py::dict& form, const py::dict& lesson, const py::dict& rule, Array<T>& first,
                         std::optional<Array<T>>& second, Array<double>& clock, Array<double>& decisions,
                         int n_threads) {
  const FeatureMap map = map_of(form);
  const LessonArrays<T, double> arrays(lesson);
  const auto learned = arrays.over(rows_of(indptr, indices, values, map.n_cols));
  const StepRule steps = step_rule_of(rule);
  if (steps.loss->curvature > 0) expect_curvature(learned);
  expect_size(clock, kStepClock, "clock");
  expect_size(decisions, {learned.rows.n_rows, learned.outputs}, "decisions");
  T* tables[2] = {table_of(first, map, learned.outputs), second ? table_of(*second, map, learned.outputs) : nullptr};
  double *times = clock.mutable_data(), *f = decisions.mutable_data();
  const Released nogil;
  return primal_descend(map, learned, steps, tables[0], tables[1], times, f, n_threads);
}

template <class T>
Offset ascend(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, const py::dict& form,
              const py::dict& lesson, const std::string& loss, double epsilon, Array<T>& table, Array<double>& beta,
              Array<Index>& idle, Offset sweep, Array<double>& gap, int n_threads) {
  const FeatureMap map = map_of(form);
  const LessonArrays<T, double> arrays(lesson);
  const auto learned = arrays.over(rows_of(indptr, indices, values, map.n_cols));
  const PointLoss& kind = loss_of(loss);
  expect_curvature(learned);
  if (learned.weight == nullptr) throw std::invalid_argument("the ascent needs the weight of every row");
  expect_size(beta, {learned.rows.n_rows, learned.outputs}, "beta");
  expect_size(gap, learned.outputs, "gap");
  expect_size(idle, learned.rows.n_rows, "idle");
  T* weights = table_of(table, map, learned.outputs);
  const Ascent ascent{beta.mutable_data(), idle.mutable_data(), sweep, gap.mutable_data()};
  const Released nogil;
  return primal_ascend(map, learned, ascent, kind, epsilon, weights, n_threads);
}

template <class T>
void primal_decide_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                      const py::dict& form, const std::optional<Array<double>>& row_scale, Array<T>& table,
                      Array<double>& decisions, int n_threads, bool blocked) {
  const Offset outputs = decisions.ndim() == 2 ? decisions.shape(1) : 1;
  const Call<T> call(form, indptr, indices, values, row_scale, outputs);
  call.per_row(decisions, "decisions");
  double* f = decisions.mutable_data();
  const T* weights = table_of(table, call.map, outputs);
  if (blocked) expect_whole(call.map);
  const Released nogil;
  if (blocked)
    wide_decide(call.map, call.rows, call.row_scale, outputs, weights, f, n_threads);
  else
    primal_decide(call.map, call.rows, call.row_scale, outputs, weights, f, n_threads);
}

// An interrupt leaves some of the rows in the tables: the caller takes them back.
template <class T>
void add(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, const py::dict& form,
         const std::optional<Array<double>>& row_scale, const Array<double>& first_coef,
         const Array<double>& second_coef, Array<T>& first, std::optional<Array<T>>& second, int n_threads) {
  const Offset outputs = first_coef.ndim() == 2 ? first_coef.shape(1) : 1;
  const Call<T> call(form, indptr, indices, values, row_scale, outputs);
  const Addition<T> one{table_of(first, call.map, outputs), call.per_row(first_coef, "first_coef")};
  const Addition<T> other{second ? table_of(*second, call.map, outputs) : nullptr,
                          call.per_row(second_coef, "second_coef")};
  expect_whole(call.map);
  const Released nogil;
  wide_add(call.map, call.rows, call.row_scale, outputs, one, other, n_threads);
}

// Sum over rows and outputs of the coordinates' gaps and of the losses, for one output after the other: (2, outputs).
Array<double> gaps(const Array<double>& beta, const Array<double>& value, const Array<double>& target,
                   const Array<double>& upper, const std::string& loss, double epsilon) {
  const Offset n = static_cast<Offset>(upper.size()), outputs = n > 0 ? static_cast<Offset>(target.size()) / n : 1;
  expect_size(beta, {n, outputs}, "beta");
  expect_size(value, {n, outputs}, "value");
  expect_size(target, {n, outputs}, "target");
  const PointLoss& kind = loss_of(loss);
  const double *b = beta.data(), *f = value.data(), *y = target.data(), *most = upper.data();
  std::vector<double> sums;
  {
    const Released nogil;
    sums = coordinate_sums(b, f, y, most, n, outputs, kind, epsilon);
  }
  return to_array(sums);
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
  m.def("primal_descend", either(&primal_descend_of<float>, &primal_descend_of<double>), exact("indptr"),
        exact("indices"), exact("values"), arg("form"), arg("lesson"), arg("rule"), exact("first"),
        exact("second").none(true), exact("clock"), exact("decisions"), arg("n_threads"),
        "Algorithm 1 through the weight table; the row at which a value is not finite, or -1.");
  m.def("primal_ascend", either(&ascend<float>, &ascend<double>), exact("indptr"), exact("indices"), exact("values"),
        arg("form"), arg("lesson"), arg("loss"), arg("epsilon"), exact("table"), exact("beta"), exact("idle"),
        arg("sweep"), exact("gap"), arg("n_threads"), "One sweep of dual coordinate ascent.");
  m.def("primal_decide", either(&primal_decide_of<float>, &primal_decide_of<double>), exact("indptr"), exact("indices"),
        exact("values"), arg("form"), exact("row_scale").none(true), exact("table"), exact("decisions"),
        arg("n_threads"), arg("blocked"), "Values of a weight table, row by row or by blocks of rows.");
  m.def("primal_add", either(&add<float>, &add<double>), exact("indptr"), exact("indices"), exact("values"),
        arg("form"), exact("row_scale").none(true), exact("first_coef"), exact("second_coef"), exact("first"),
        exact("second").none(true), arg("n_threads"), "Adds rows to the weight tables, by blocks.");
  m.def("coordinate_sums", &gaps, arg("beta").noconvert(), arg("value").noconvert(), arg("target").noconvert(),
        arg("upper").noconvert(), arg("loss"), arg("epsilon"),
        "(2 * outputs): gaps of the coordinates, then losses, summed over rows.");
  m.def("loss_values", &values_of, arg("loss"), arg("value").noconvert(), arg("target").noconvert(), arg("epsilon"),
        "The loss of every value, in one dimension.");
  py::dict curvatures;
  for (const PointLoss& loss : all_losses()) curvatures[py::str(std::string(loss.name))] = loss.curvature;
  m.attr("LOSSES") = curvatures;  // name -> curvature, 0 of a loss whose slope is bounded
  m.def(
      "primal_table_shape",
      [](const py::dict& form) {
        const auto map = map_of(form);
        return std::make_tuple(map.rows(), map.width(), map.table_size());
      },
      arg("form"), "(rows, width, entries) of the table of one output.");
}

}  // namespace lacunar::bind
