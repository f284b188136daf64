#include "arrays.hpp"
#include "lacunar/dual/dual.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

py::tuple result_of(const DualProgress& progress) {
  if (!progress.finite)
    throw std::invalid_argument(
        "the Gram matrix must hold numbers that float32 can; it holds NaN or infinite ones. Use normalize='trace' or "
        "'cosine', "
        "standardised columns, or a smaller gamma or degree.");
  return py::make_tuple(progress.steps, progress.primal, progress.dual, progress.gap(), progress.stalled);
}

py::tuple ascend_binary(const Array<float>& gram, const Array<double>& y, const Array<double>& upper,
                        const std::string& loss, Array<double> beta, Array<double> gradient, Array<double> logit,
                        Offset max_steps, double tol) {
  const Offset n = y.size();
  expect_size(gram, {n, n}, "gram");
  expect_size(upper, n, "upper");
  expect_size(beta, n, "beta");
  expect_size(gradient, n, "gradient");
  expect_size(logit, n, "logit");
  const DualProblem problem{gram.data(), y.data(), upper.data(), n,
                            &loss_with(&PointLoss::has_gram_dual, loss, "dual over a Gram")};
  const DualState state{beta.mutable_data(), gradient.mutable_data(), logit.mutable_data()};
  DualProgress progress;
  {
    const Released nogil;
    progress = ascend(problem, state, max_steps, tol);
  }
  return result_of(progress);
}

py::tuple ascend_multiclass(const Array<float>& gram, const Array<Offset>& label, const Array<double>& upper,
                            Array<double> tau, Array<double> score, Offset max_steps, double tol) {
  const Offset n = label.size();
  expect_size(gram, {n, n}, "gram");
  expect_size(upper, n, "upper");
  expect_size(score, tau.size(), "score");
  if (tau.ndim() != 2 || tau.shape(1) != n) throw std::invalid_argument("tau is not (k, n)");
  expect_below(label, tau.shape(0), "label");
  const MulticlassProblem problem{gram.data(), label.data(), upper.data(), n, static_cast<Offset>(tau.shape(0))};
  double *t = tau.mutable_data(), *s = score.mutable_data();
  DualProgress progress;
  {
    const Released nogil;
    progress = ascend(problem, t, s, max_steps, tol);
  }
  return result_of(progress);
}

}  // namespace

void bind_dual(py::module_& m) {
  using py::arg;
  m.def("dual_ascend", &ascend_binary, arg("gram").noconvert(), arg("y").noconvert(), arg("upper").noconvert(),
        arg("loss"), arg("beta").noconvert(), arg("gradient").noconvert(), arg("logit").noconvert(), arg("max_steps"),
        arg("tol"), "A slice of greedy dual ascent, in place: (steps, primal, dual, gap, stalled).");
  m.def("dual_ascend_multiclass", &ascend_multiclass, arg("gram").noconvert(), arg("label").noconvert(),
        arg("upper").noconvert(), arg("tau").noconvert(), arg("score").noconvert(), arg("max_steps"), arg("tol"),
        "The same for Crammer and Singer's loss, in place: (steps, primal, dual, gap, stalled).");
}

}  // namespace lacunar::bind
