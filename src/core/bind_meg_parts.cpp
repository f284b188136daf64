#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <limits>
#include <numeric>

#include "lacunar/meg.hpp"
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
    const auto made = py::cast<Doubles>((*held)(given));
    expect_size(made, n, "K x");
    std::copy_n(made.data(), n, out);
  };
}

// log e_1^T exp(T) e_1 of many tridiagonal matrices of one order: alpha and beta (pairs, k), the last beta unused.
Doubles log_first(const Doubles& alpha, const Doubles& beta) {
  if (alpha.ndim() != 2) throw std::invalid_argument("alpha is not a matrix");
  expect_size(beta, alpha.size(), "beta");
  Doubles made(alpha.shape(0));
  TridiagonalExponential exponential;
  const int k = static_cast<int>(alpha.shape(1));
  for (py::ssize_t t = 0; t < alpha.shape(0); ++t)
    made.mutable_data()[t] = exponential.log_first(alpha.data() + t * k, beta.data() + t * k, k);
  return made;
}

// Trials over the matrix that a block Lanczos process has left of log W: d of its rows, x (trials, d).
py::tuple run_reduced(const Doubles& square, const Doubles& x, const Doubles& y, const Doubles& step, double gamma,
                      bool strict, double log_scale, double tol, Doubles out, Array<std::uint8_t> updated) {
  auto source = source_of(x, x.shape(0));
  const Offset d = source.leading, count = source.vertices;
  if (square.ndim() != 2 || square.shape(0) < d || square.shape(1) < d) throw std::invalid_argument("square is too small");
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

// log(y_bar + 1) of pair `at` over such a matrix, once the pairs have changed it by change (trials,) x x^T each; NaN if it fails.
double value_reduced(const Doubles& square, const Doubles& x, const Doubles& change, Index at, double log_scale, double tol) {
  auto source = source_of(x, x.shape(0));
  const Offset d = source.leading;
  if (square.ndim() != 2 || square.shape(0) < d || square.shape(1) < d) throw std::invalid_argument("square is too small");
  expect_size(change, source.vertices, "change");
  Meg meg(std::make_unique<MegFeatureForm>(square.data(), square.shape(1), std::move(source), d), log_scale, tol);
  for (Index k = 0; k < change.size(); ++k)
    if (change.data()[k] != 0) meg.learn(k, 0, change.data()[k], std::numeric_limits<double>::quiet_NaN());
  const MegAnswer answer = meg.value(at, 0);
  return answer.status == MegStatus::ok ? answer.log_score : std::numeric_limits<double>::quiet_NaN();
}

void bind_sides(py::module_& m) {
  using py::arg;
  const auto plain = plain_type();
  py::class_<MegSide, std::shared_ptr<MegSide>>(m, "MegSide", plain, "Half a kernel over the vertices that take part.")
      .def_property_readonly("vertices", &MegSide::vertices)
      .def_property_readonly("seats", [](const MegSide& side) { return to_array(side.vertex_at()); });
  py::class_<MegDense, MegSide, std::shared_ptr<MegDense>>(m, "MegDense", plain, "A kernel given whole.")
      .def(py::init([](const Doubles& kernel, Offset n) { return std::make_shared<MegDense>(square_of(kernel, n)); }),
           arg("kernel").noconvert(), arg("vertices"))
      .def("grow", [](MegDense& side, const Doubles& kernel, Offset n) { side.grow(square_of(kernel, n)); },
           arg("kernel").noconvert(), arg("vertices"));
  py::class_<MegFactor, MegSide, std::shared_ptr<MegFactor>>(m, "MegFactor", plain, "Phi Phi^T + own I + constant 11^T.")
      .def(py::init([](const Doubles& phi, Offset n, double own, double constant) {
             auto source = source_of(phi, n);
             const Offset d = source.leading;
             return std::make_shared<MegFactor>(std::move(source), d, own, constant);
           }),
           arg("phi").noconvert(), arg("vertices"), arg("own"), arg("constant"))
      .def("grow", [](MegFactor& side, const Doubles& phi, Offset n) { side.grow(source_of(phi, n)); },
           arg("phi").noconvert(), arg("vertices"));
  py::class_<MegOperator, MegSide, std::shared_ptr<MegOperator>>(m, "MegOperator", plain, "A kernel known by its products.")
      .def(py::init([](const Doubles& diagonal, const py::function& apply) {
             return std::make_shared<MegOperator>(vector_of(diagonal), apply_of(apply, diagonal.size()));
           }),
           arg("diagonal").noconvert(), arg("apply"));
}

}  // namespace

void bind_meg_parts(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  bind_sides(m);
  m.attr("MEG_OK") = static_cast<int>(MegStatus::ok);
  m.attr("MEG_NOT_FINITE") = static_cast<int>(MegStatus::not_finite);
  m.attr("MEG_NOT_CONVERGED") = static_cast<int>(MegStatus::not_converged);
  m.def("meg_run_reduced", &run_reduced, exact("square"), exact("x"), exact("y"), exact("step"), arg("gamma"), arg("strict"),
        arg("log_scale"), arg("tol"), exact("out"), exact("updated"), "As Meg.run with values.");
  m.def("meg_value_reduced", &value_reduced, exact("square"), exact("x"), exact("change"), arg("at"), arg("log_scale"),
        arg("tol"));
  m.def("tridiagonal_log_first", &log_first, exact("alpha"), exact("beta"));
}

}  // namespace lacunar::bind
