#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "arrays.hpp"
#include "lacunar/rls.hpp"
#include "lacunar/row_codes.hpp"
#include "lacunar/trackers.hpp"

namespace lacunar::bind {
namespace {

Forgetting forgetting_of(const py::dict& options) {
  Forgetting made;
  const auto kind = options["forgetting"].cast<std::string>();
  if (kind == "window")
    made.kind = Forgetting::Kind::window;
  else if (kind == "adaptive")
    made.kind = Forgetting::Kind::adaptive;
  else if (kind != "fixed")
    throw std::invalid_argument("unknown forgetting " + kind);
  made.keep = options["keep"].cast<double>();
  made.lost = options["lost"].cast<double>();
  made.start = options["start"].cast<double>();
  return made;
}

RlsRule rule_of(const py::dict& options) {
  RlsRule rule;
  rule.lam1 = options["lam1"].cast<double>();
  rule.lam2 = options["lam2"].cast<double>();
  rule.lam3 = options["lam3"].cast<double>();
  rule.rho = options["rho"].cast<double>();
  rule.constant_until = options["constant_until"].cast<Offset>();
  rule.continuous = options["continuous"].cast<bool>();
  rule.ridge = options["ridge"].cast<double>();
  rule.cap = options["cap"].cast<double>();
  rule.delta = options["delta"].cast<double>();
  rule.orthonormal = options["orthonormal"].cast<bool>();
  rule.forgetting = forgetting_of(options);
  return rule;
}

void expect_rank(Offset d) {
  if (d < 1 || d > kMaxRank) throw std::invalid_argument("rank must lie between 1 and " + std::to_string(kMaxRank));
}

template <class P>
RlsState<P> state_of(Array<double>& v, Array<double>& t, Array<double>& t_inverse, Array<double>& w,
                     const Array<Index>& slot, Array<P>& pool, Array<double>& discount, Array<double>& clock,
                     Array<double>& codes, Array<double>& labelled, Array<double>& labels) {
  if (v.ndim() != 2) throw std::invalid_argument("v is not a matrix");
  const Offset n_cols = v.shape(0), d = v.shape(1);
  expect_rank(d);
  expect_size(t, d * d, "t");
  expect_size(t_inverse, d * d, "t_inverse");
  expect_size(w, d, "w");
  expect_size(slot, n_cols, "slot");
  expect_size(discount, n_cols, "discount");
  expect_size(clock, kRlsClock, "clock");
  expect_size(codes, d * d, "codes");
  expect_size(labelled, d, "labelled");
  expect_size(labels, 1, "labels");
  const int rank = static_cast<int>(d);
  if (pool.ndim() != 2 || pool.shape(1) != rls_stride<P>(rank)) throw std::invalid_argument("pool has another stride");
  return {n_cols,
          rank,
          v.mutable_data(),
          t.mutable_data(),
          t_inverse.mutable_data(),
          w.mutable_data(),
          slot.data(),
          pool.mutable_data(),
          discount.mutable_data(),
          clock.mutable_data(),
          codes.mutable_data(),
          labelled.mutable_data(),
          labels.mutable_data()};
}

// Every column of the rows has a place in the pool.
template <class T>
void expect_slots(const Rows<T>& rows, const Array<Index>& slot, Offset places) {
  for (Offset p = rows.offsets[0]; p < rows.offsets[rows.n_rows]; ++p) {
    const Index j = rows.indices[p];
    if (j < 0 || j >= rows.n_cols || slot.data()[j] < 0 || slot.data()[j] >= places)
      throw std::invalid_argument("slot must place every column of the rows in the pool; column " + std::to_string(j) +
                                  " has no place there");
  }
}

template <class P, class T>
Offset pass(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
            const Array<Offset>& order, const std::optional<Array<double>>& label, const py::dict& options,
            Array<double>& v, Array<double>& t, Array<double>& t_inverse, Array<double>& w, const Array<Index>& slot,
            Array<P>& pool, Array<double>& discount, Array<double>& clock, Array<double>& codes,
            Array<double>& labelled, Array<double>& labels, Array<double>& prediction, Array<double>& residual) {
  const auto rows = rows_of(indptr, indices, values, v.ndim() == 2 ? v.shape(0) : 0);
  const auto state = state_of(v, t, t_inverse, w, slot, pool, discount, clock, codes, labelled, labels);
  expect_below(order, rows.n_rows, "order");
  expect_slots(rows, slot, pool.shape(0));
  const auto rule = rule_of(options);
  if (label) expect_size(*label, rows.n_rows, "label");
  expect_size(prediction, rows.n_rows, "prediction");
  expect_size(residual, rows.n_rows, "residual");
  const double* known = label ? label->data() : nullptr;
  const RlsTrace trace{prediction.mutable_data(), residual.mutable_data()};
  const py::gil_scoped_release nogil;
  return rls_pass(rows, order.data(), static_cast<Offset>(order.size()), known, rule, state, trace);
}

Offset order_size(const Array<Offset>& order) { return static_cast<Offset>(order.size()); }

double* matrix_of(Array<double>& matrix, Offset rows, Offset cols, const char* name) {
  expect_size(matrix, {rows, cols}, name);
  return matrix.mutable_data();
}

template <class T>
Offset shared(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
              const Array<Offset>& order, const std::optional<Array<double>>& label, const py::dict& options,
              Array<double>& v, Array<double>& inverse, Array<double>& count, Array<double>& discount,
              Array<double>& sums, Array<double>& codes, Array<double>& labelled, Array<double>& w,
              Array<double>& clock, Array<double>& prediction, Array<double>& residual) {
  if (v.ndim() != 2) throw std::invalid_argument("v is not a matrix");
  const Offset n_cols = v.shape(0), d = v.shape(1);
  expect_rank(d);
  expect_size(w, d, "w");
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_below(order, rows.n_rows, "order");
  const SharedState state{n_cols,
                          static_cast<int>(d),
                          v.mutable_data(),
                          matrix_of(inverse, d, d, "inverse"),
                          matrix_of(count, n_cols, 1, "count"),
                          matrix_of(discount, n_cols, 1, "discount"),
                          matrix_of(sums, kSharedSum, 1, "sums"),
                          matrix_of(codes, d, d, "codes"),
                          matrix_of(labelled, d, 1, "labelled"),
                          w.mutable_data(),
                          matrix_of(clock, kRlsClock, 1, "clock")};
  const SharedRule rule{options["lam1"].cast<double>(), options["ridge"].cast<double>(),
                        options["automatic"].cast<bool>(), forgetting_of(options)};
  if (label) expect_size(*label, rows.n_rows, "label");
  const RlsTrace trace{matrix_of(prediction, rows.n_rows, 1, "prediction"),
                       matrix_of(residual, rows.n_rows, 1, "residual")};
  const double* known = label ? label->data() : nullptr;
  const py::gil_scoped_release nogil;
  return shared_pass(rows, order.data(), order_size(order), known, rule, state, trace);
}

template <class T>
Offset grouse(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
              const Array<Offset>& order, double damping, double ridge, Array<double>& v, Array<double>& t,
              Array<double>& t_inverse, Array<double>& clock, Array<double>& residual) {
  if (v.ndim() != 2) throw std::invalid_argument("v is not a matrix");
  const Offset n_cols = v.shape(0), d = v.shape(1);
  expect_rank(d);
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_below(order, rows.n_rows, "order");
  const GrouseState state{n_cols,
                          static_cast<int>(d),
                          v.mutable_data(),
                          matrix_of(t, d, d, "t"),
                          matrix_of(t_inverse, d, d, "t_inverse"),
                          matrix_of(clock, kRlsClock, 1, "clock")};
  const RlsTrace trace{nullptr, matrix_of(residual, rows.n_rows, 1, "residual")};
  const py::gil_scoped_release nogil;
  return grouse_pass(rows, order.data(), order_size(order), damping, ridge, state, trace);
}

template <class T>
Offset codes(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
             const Array<double>& basis, double ridge, const std::optional<Array<double>>& ridges, Array<double>& code,
             std::optional<Array<double>>& left, std::optional<Array<double>>& inverse, int n_threads) {
  if (basis.ndim() != 2) throw std::invalid_argument("basis is not a matrix");
  const Offset d = basis.shape(1);
  expect_rank(d);
  const auto rows = rows_of(indptr, indices, values, basis.shape(0));
  const Offset n = rows.n_rows;
  if (ridges) expect_size(*ridges, n, "ridges");
  const RowCodes out{matrix_of(code, n, d, "code"), left ? matrix_of(*left, n, 1, "left") : nullptr,
                     inverse ? matrix_of(*inverse, n, d * (d + 1) / 2, "inverse") : nullptr};
  const double* each = ridges ? ridges->data() : nullptr;
  const double* of = basis.data();
  const py::gil_scoped_release nogil;
  return row_codes(rows, of, static_cast<int>(d), ridge, each, out, n_threads);
}

template <class T>
void bind_trackers(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("shared_pass", &shared<T>, exact("indptr"), exact("indices"), exact("values"), exact("order"),
        exact("label").none(true), arg("options"), exact("v"), exact("inverse"), exact("count"), exact("discount"),
        exact("sums"), exact("codes"), exact("labelled"), exact("w"), exact("clock"), exact("prediction"),
        exact("residual"), "PETRELS with one correlation matrix for all columns; as rls_pass.");
  m.def("grouse_pass", &grouse<T>, exact("indptr"), exact("indices"), exact("values"), exact("order"), arg("damping"),
        arg("ridge"), exact("v"), exact("t"), exact("t_inverse"), exact("clock"), exact("residual"),
        "Greedy GROUSE over rows in order; the position of the first row that is not finite, or -1.");
  m.def("row_codes", &codes<T>, exact("indptr"), exact("indices"), exact("values"), exact("basis"), arg("ridge"),
        exact("ridges").none(true), exact("code"), exact("left").none(true), exact("inverse").none(true),
        arg("n_threads"), "Ridge codes of rows in a basis; the number of singular rows that were rescued.");
}

template <class P, class T>
void bind_pass(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("rls_pass", &pass<P, T>, exact("indptr"), exact("indices"), exact("values"), exact("order"),
        exact("label").none(true), arg("options"), exact("v"), exact("t"), exact("t_inverse"), exact("w"),
        exact("slot"), exact("pool"), exact("discount"), exact("clock"), exact("codes"), exact("labelled"),
        exact("labels"), exact("prediction"), exact("residual"),
        "Recursive least squares over rows in order; the position of the first row that is not finite, or -1.");
}

}  // namespace

void bind_rls(py::module_& m) {
  bind_pass<double, double>(m);
  bind_pass<double, float>(m);
  bind_pass<float, double>(m);
  bind_pass<float, float>(m);
  m.def(
      "rls_stride",
      [](int d, bool single) {
        expect_rank(d);
        return single ? rls_stride<float>(d) : rls_stride<double>(d);
      },
      py::arg("d"), py::arg("single"), "Elements of one stored inverse correlation.");
  bind_trackers<double>(m);
  bind_trackers<float>(m);
  m.def(
      "shared_ridge",
      [](const Array<double>& sums, int d, double otherwise) {
        expect_size(sums, kSharedSum, "sums");
        return ridge_of(sums.data(), d, otherwise);
      },
      py::arg("sums").noconvert(), py::arg("d"), py::arg("otherwise"), "The automatic ridge of running sums.");
  m.attr("SHARED_SUMS") = static_cast<int>(kSharedSum);
  m.attr("RLS_CLOCK") = static_cast<int>(kRlsClock);
}

}  // namespace lacunar::bind
