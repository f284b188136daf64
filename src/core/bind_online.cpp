#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "arrays.hpp"
#include "lacunar/online.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

template <class T>
using KernelTuple =
    std::tuple<T, T, T, Array<T>, int, T, T>;  // on_sum, on_count, constant, table, degree, coef0, shrink

// (count, indptr, indices, values, scale, first, second), with room beyond `count`
template <class T>
using SupportTuple =
    std::tuple<Offset, Array<Offset>, Array<Index>, Array<T>, std::optional<Array<T>>, Array<double>, Array<double>>;

template <class T>
RowKernel<T> kernel_of(const KernelTuple<T>& t, const Rows<T>& rows) {
  const auto& table = std::get<3>(t);
  if (int_of(table.size(), "the table of the kernel") <= longest_of(rows))
    throw std::invalid_argument("the table of the kernel ends before the longest row does");
  return {{std::get<0>(t), std::get<1>(t), std::get<2>(t), table.data()},
          static_cast<int>(table.size()),
          std::get<4>(t),
          std::get<5>(t),
          std::get<6>(t)};
}

template <class A>
auto* room_in(A& made, Offset needed) {
  if (made.size() < needed) throw std::invalid_argument("no room left among the support rows");
  return made.mutable_data();
}

// Support rows with room for `more` rows of `entries` entries. Their columns are looked at where a model is loaded:
// here that would cost as much as the values of a single row do.
template <class T>
Support<T> support_of(SupportTuple<T>& t, Offset outputs, Offset more, Offset entries) {
  auto& [count, offsets, indices, values, scale, first, second] = t;
  if (count < 0 || count >= offsets.size()) throw std::invalid_argument("count must lie within the offsets");
  Offset* starts = room_in(offsets, count + more + 1);
  expect_offsets(starts, count, std::min(indices.size(), values.size()), "the offsets of the support rows");
  const Offset used = starts[count] + entries, rows = count + more;
  return {count,
          starts,
          room_in(indices, used),
          room_in(values, used),
          scale ? room_in(*scale, rows) : nullptr,
          room_in(first, product_of({rows, outputs})),
          room_in(second, product_of({rows, outputs}))};
}

template <class T>
const T* scale_of(const std::optional<Array<T>>& scale, const Rows<T>& rows, bool wanted) {
  if (scale.has_value() != wanted)
    throw std::invalid_argument("rows and support rows must both have scales, or neither");
  if (scale) expect_size(*scale, rows.n_rows, "scale");
  return scale ? scale->data() : nullptr;
}

template <class T>
std::pair<Offset, Offset> online_descend_of(const KernelTuple<T>& kernel, Offset n_cols, const Array<Offset>& indptr,
                                            const Array<Index>& indices, const Array<T>& values,
                                            const std::optional<Array<T>>& scale, const Array<double>& target,
                                            const std::optional<Array<double>>& weight, const Array<double>& curvature,
                                            const std::optional<Array<double>>& base, const Array<Offset>& order,
                                            const std::string& loss, double epsilon, double rho, const std::string& eta,
                                            double eta0, double power, bool averaging_by_step, Offset block,
                                            SupportTuple<T> support, Array<double>& clock, Array<double>& decisions,
                                            bool valued, int n_threads) {
  const Offset outputs = target.ndim() == 2 ? target.shape(1) : 1;
  const StepRule rule{loss_of(loss), epsilon, rho, kind_of(eta), eta0, power, averaging_by_step};
  const auto rows = rows_of(indptr, indices, values, n_cols);
  const Offset n_order = static_cast<Offset>(order.size());
  expect_below(order, rows.n_rows, "order");
  Offset entries = 0;
  for (Offset k = 0; k < n_order; ++k) entries += rows.offsets[order.data()[k] + 1] - rows.offsets[order.data()[k]];
  auto kept = support_of(support, outputs, n_order, entries);
  expect_size(clock, kStepClock, "clock");
  expect_size(target, {rows.n_rows, outputs}, "target");
  expect_size(decisions, {rows.n_rows, outputs}, "decisions");
  if (weight) expect_size(*weight, rows.n_rows, "weight");
  if (base) expect_size(*base, {rows.n_rows, outputs}, "base");
  if (is_quadratic(rule.loss)) expect_size(curvature, rows.n_rows, "curvature");
  if (block < 1) throw std::invalid_argument("block must be at least 1");
  const Lesson<T> lesson{rows,
                         scale_of(scale, rows, kept.scale != nullptr),
                         target.data(),
                         weight ? weight->data() : nullptr,
                         is_quadratic(rule.loss) ? curvature.data() : nullptr,
                         base ? base->data() : nullptr,
                         outputs,
                         order.data(),
                         n_order};
  const auto form = kernel_of(kernel, rows);
  double *times = clock.mutable_data(), *f = decisions.mutable_data();
  const py::gil_scoped_release nogil;
  const Offset reached = online_descend(form, lesson, rule, block, kept, times, f, valued, n_threads);
  return {reached, kept.count};
}

template <class T>
void online_decide_of(const KernelTuple<T>& kernel, Offset n_cols, const Array<Offset>& indptr,
                      const Array<Index>& indices, const Array<T>& values, const std::optional<Array<T>>& scale,
                      SupportTuple<T> support, const Array<double>& coef, Array<double>& decisions, int n_threads) {
  const Offset outputs = decisions.ndim() == 2 ? decisions.shape(1) : 1;
  const auto rows = rows_of(indptr, indices, values, n_cols);
  const auto kept = support_of(support, outputs, 0, 0);
  expect_size(coef, {kept.count, outputs}, "coef");
  expect_size(decisions, {rows.n_rows, outputs}, "decisions");
  const T* scales = scale_of(scale, rows, kept.scale != nullptr);
  const auto form = kernel_of(kernel, rows);
  double* f = decisions.mutable_data();
  const py::gil_scoped_release nogil;
  online_decide(form, rows, scales, kept, coef.data(), outputs, f, n_threads);
}

template <class T>
void bind_online_of(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("online_descend", &online_descend_of<T>, exact("kernel"), arg("n_cols"), exact("indptr"), exact("indices"),
        exact("values"), exact("scale").none(true), exact("target"), exact("weight").none(true), exact("curvature"),
        exact("base").none(true), exact("order"), arg("loss"), arg("epsilon"), arg("rho"), arg("eta"), arg("eta0"),
        arg("power"), arg("averaging_by_step"), arg("block"), exact("support"), exact("clock"), exact("decisions"),
        arg("valued"), arg("n_threads"),
        "Algorithm 1 over support rows until a fold is due: steps taken, or -1 - the one that is not finite; support "
        "rows.");
  m.def("online_decide", &online_decide_of<T>, exact("kernel"), arg("n_cols"), exact("indptr"), exact("indices"),
        exact("values"), exact("scale").none(true), exact("support"), exact("coef"), exact("decisions"),
        arg("n_threads"), "Values of a sum over support rows.");
}

}  // namespace

void bind_online(py::module_& m) {
  bind_online_of<float>(m);
  bind_online_of<double>(m);
}

}  // namespace lacunar::bind
