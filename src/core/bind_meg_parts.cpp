#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <limits>
#include <numeric>

#include "lacunar/meg/meg.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "meg_arrays.hpp"

namespace lacunar::bind {
namespace {

MegOperator::Apply apply_of(const py::function& apply, Offset n) {
  const std::shared_ptr<const py::function> held(new py::function(apply), [](const py::function* f) {
    const py::gil_scoped_acquire gil;
    delete f;
  });
  return [held, n](const double* x, double* out) {
    const py::gil_scoped_acquire gil;
    Doubles given(n);
    std::copy_n(x, n, given.mutable_data());
    const auto made = py::cast<py::array_t<double, py::array::c_style | py::array::forcecast>>((*held)(given));
    expect_size(made, n, "K x");
    std::copy_n(made.data(), n, out);
  };
}

// log e_1^T exp(T) e_1 of many tridiagonal matrices of one order: alpha and beta (pairs, k), the last beta unused.
Doubles log_first(const Doubles& alpha, const Doubles& beta) {
  expect_matrix(alpha, "alpha");
  expect_size(beta, alpha.size(), "beta");
  const int k = int_of(alpha.shape(1), "the order of the matrices");
  if (k < 1) throw std::invalid_argument("alpha must have one column at least; it has none");
  Doubles made(alpha.shape(0));
  const Offset count = alpha.shape(0);
  const double *a = alpha.data(), *b = beta.data();
  double* to = made.mutable_data();
  const py::gil_scoped_release nogil;
  TridiagonalExponential exponential;
  InterruptCheck check;
  for (Offset t = 0; t < count; ++t, check.after(16 * static_cast<Offset>(k) * k))
    to[t] = exponential.log_first(a + t * k, b + t * k, k);
  return made;
}

MegSource rows_source_of(const Doubles& x) {
  expect_matrix(x, "x");
  return source_of(x, x.shape(0));
}

// Trials over the matrix that a block Lanczos process has left of log W: d of its rows, x (trials, d).
py::tuple run_reduced(const Doubles& square, const Doubles& x, const Doubles& y, const Doubles& step, double gamma,
                      bool strict, double log_scale, double tol, Doubles out, Array<std::uint8_t> updated) {
  auto source = rows_source_of(x);
  const Offset d = source.leading, count = source.vertices;
  if (square.ndim() != 2 || square.shape(0) < d || square.shape(1) < d)
    throw std::invalid_argument("square is too small");
  for (const py::array& each : {py::array(y), py::array(step), py::array(out), py::array(updated)})
    expect_size(each, count, "an array of trials");
  std::vector<Index> i(count), none(count, 0);
  std::iota(i.begin(), i.end(), 0);
  const MegStream stream{count, i.data(), none.data(), y.data(),           step.data(),
                         gamma, strict,   true,        out.mutable_data(), updated.mutable_data()};
  MegStatus status = MegStatus::ok;
  Meg meg(std::make_unique<MegFeatureForm>(square.data(), square.shape(1), std::move(source), d), log_scale, tol);
  Offset failed = -1;
  {
    const py::gil_scoped_release nogil;
    failed = meg.run(stream, status);
  }
  return py::make_tuple(failed, static_cast<int>(status));
}

// log(y_bar + 1) of pair `at` over such a matrix, once the pairs have changed it by change (trials,) x x^T each; NaN if
// it fails.
double value_reduced(const Doubles& square, const Doubles& x, const Doubles& change, Index at, double log_scale,
                     double tol) {
  auto source = rows_source_of(x);
  const Offset d = source.leading;
  if (square.ndim() != 2 || square.shape(0) < d || square.shape(1) < d)
    throw std::invalid_argument("square is too small");
  expect_size(change, source.vertices, "change");
  if (at < 0 || at >= source.vertices) throw std::out_of_range("no such trial");
  Meg meg(std::make_unique<MegFeatureForm>(square.data(), square.shape(1), std::move(source), d), log_scale, tol);
  for (Index k = 0; k < change.size(); ++k)
    if (change.data()[k] != 0) meg.learn(k, 0, change.data()[k], std::numeric_limits<double>::quiet_NaN());
  const MegAnswer answer = meg.value(at, 0);
  return answer.status == MegStatus::ok ? answer.log_score : std::numeric_limits<double>::quiet_NaN();
}

class DenseSide final : public Side {
 public:
  DenseSide(const Doubles& kernel, Offset vertices) : Side(std::make_shared<MegDense>(square_of(kernel, vertices))) {}
};

class FactorSide final : public Side {
 public:
  FactorSide(const Doubles& phi, Offset vertices, double own, double constant)
      : Side(std::make_shared<MegFactor>(source_of(phi, vertices), own, constant)) {}
};

class OperatorSide final : public Side {
 public:
  OperatorSide(const Doubles& diagonal, const py::function& apply)
      : Side(std::make_shared<MegOperator>(vector_of(diagonal), apply_of(apply, int_of(diagonal.size(), "vertices")))) {
  }
};

// In turn with the engine that the side belongs to.
void grow(const Side& side, MegSource source) {
  if (!side.locked([&](MegSide& held) { return held.grow(std::move(source)); }))
    throw std::invalid_argument("a side may gain vertices; it loses none, and features keep their columns");
}

void bind_sides(py::module_& m) {
  using py::arg;
  const auto plain = plain_type();
  py::class_<Side, std::shared_ptr<Side>>(m, "MegSide", plain, "Half a kernel over the vertices that take part.")
      .def_property_readonly(
          "vertices", [](const Side& side) { return side.locked([](MegSide& held) { return held.vertices(); }); })
      .def_property_readonly("seats", [](const Side& side) {
        return to_array(side.locked([](MegSide& held) { return std::vector<Index>(held.vertex_at()); }));
      });
  py::class_<DenseSide, Side, std::shared_ptr<DenseSide>>(m, "MegDense", plain, "A kernel given whole.")
      .def(py::init<const Doubles&, Offset>(), arg("kernel").noconvert(), arg("vertices"))
      .def(
          "grow", [](DenseSide& side, const Doubles& kernel, Offset n) { grow(side, square_of(kernel, n)); },
          arg("kernel").noconvert(), arg("vertices"));
  py::class_<FactorSide, Side, std::shared_ptr<FactorSide>>(m, "MegFactor", plain, "Phi Phi^T + own I + constant 11^T.")
      .def(py::init<const Doubles&, Offset, double, double>(), arg("phi").noconvert(), arg("vertices"), arg("own"),
           arg("constant"))
      .def(
          "grow", [](FactorSide& side, const Doubles& phi, Offset n) { grow(side, source_of(phi, n)); },
          arg("phi").noconvert(), arg("vertices"));
  py::class_<OperatorSide, Side, std::shared_ptr<OperatorSide>>(m, "MegOperator", plain,
                                                                "A kernel known by its products.")
      .def(py::init<const Doubles&, const py::function&>(), arg("diagonal").noconvert(), arg("apply"));
}

}  // namespace

void bind_meg_parts(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  bind_sides(m);
  m.attr("MEG_OK") = static_cast<int>(MegStatus::ok);
  m.attr("MEG_NOT_FINITE") = static_cast<int>(MegStatus::not_finite);
  m.attr("MEG_NOT_CONVERGED") = static_cast<int>(MegStatus::not_converged);
  m.def("meg_run_reduced", &run_reduced, exact("square"), exact("x"), exact("y"), exact("step"), arg("gamma"),
        arg("strict"), arg("log_scale"), arg("tol"), exact("out"), exact("updated"), "As Meg.run with values.");
  m.def("meg_value_reduced", &value_reduced, exact("square"), exact("x"), exact("change"), arg("at"), arg("log_scale"),
        arg("tol"));
  m.def("tridiagonal_log_first", &log_first, exact("alpha"), exact("beta"));
}

}  // namespace lacunar::bind
