// Names of losses, step sizes and iterates -> those of the core; what linear learners learn from.
#pragma once

#include "lacunar/primal/step_clock.hpp"
#include "lacunar/primal/training_set.hpp"
#include "options.hpp"

namespace lacunar::bind {

inline const PointLoss& loss_of(const std::string& name) {
  const PointLoss* loss = find_loss(name);
  if (loss == nullptr) throw std::invalid_argument("unknown loss " + name);
  return *loss;
}

// The loss, where it has what is asked for.
inline const PointLoss& loss_with(bool PointLoss::* piece, const std::string& name, const char* what) {
  const PointLoss& loss = loss_of(name);
  if (!(loss.*piece)) throw std::invalid_argument("loss '" + name + "' has no " + what);
  return loss;
}

inline StepRule::Kind kind_of(const std::string& eta) {
  if (eta == "theory") return StepRule::Kind::theory;
  if (eta == "printed") return StepRule::Kind::printed;
  if (eta == "constant") return StepRule::Kind::constant;
  throw std::invalid_argument("unknown eta " + eta);
}

inline Iterate iterate_of(const std::string& iterate) {
  if (iterate == "last") return Iterate::last;
  if (iterate == "average") return Iterate::average;
  if (iterate == "weighted") return Iterate::weighted;
  throw std::invalid_argument("unknown iterate " + iterate);
}

inline StepRule step_rule_of(const py::dict& options) {
  StepRule rule;
  rule.loss = &loss_of(option<std::string>(options, "loss"));
  if (rule.loss->slope == nullptr) throw std::invalid_argument("steps need a loss with a slope");
  rule.epsilon = option<double>(options, "epsilon");
  rule.rho = option<double>(options, "rho");
  rule.kind = kind_of(option<std::string>(options, "eta"));
  rule.eta0 = option<double>(options, "eta0");
  rule.iterate = iterate_of(option<std::string>(options, "iterate"));
  return rule;
}

using Numbers64 = std::optional<Array<double>>;

// The numbers of `rows` rows, `width` each; null where there are none.
inline const double* numbers_of(const Numbers64& array, Offset rows, Offset width, const char* name) {
  if (!array) return nullptr;
  expect_size(*array, {rows, width}, name);
  return array->data();
}

// The arrays, held by the caller while the core reads them. target (n_rows, outputs).
template <class T>
TrainingSet<T> training_of(const Rows<T>& rows, const Numbers64& scale, const Array<double>& target,
                           const Numbers64& weight, const Numbers64& curvature, const Array<Offset>& order) {
  const Offset outputs = target.ndim() == 2 ? target.shape(1) : 1;
  if (outputs < 1) throw std::invalid_argument("no outputs");
  expect_size(target, {rows.n_rows, outputs}, "target");
  expect_below(order, rows.n_rows, "order");
  return {rows,
          numbers_of(scale, rows.n_rows, 1, "scale"),
          target.data(),
          numbers_of(weight, rows.n_rows, 1, "weight"),
          numbers_of(curvature, rows.n_rows, 1, "curvature"),
          nullptr,
          outputs,
          order.data(),
          static_cast<Offset>(order.size())};
}

template <class T>
void expect_curvature(const TrainingSet<T>& training) {
  if (training.curvature == nullptr) throw std::invalid_argument("the curvature of the rows is needed here");
}

}  // namespace lacunar::bind
