// Names of losses and step sizes -> those of the core; what Algorithm 1 learns from.
#pragma once

#include "lacunar/primal/lesson.hpp"
#include "lacunar/primal/step_clock.hpp"
#include "options.hpp"

namespace lacunar::bind {

inline const PointLoss& loss_of(const std::string& name) {
  const PointLoss* loss = find_loss(name);
  if (loss == nullptr) throw std::invalid_argument("unknown loss " + name);
  return *loss;
}

inline StepRule::Kind kind_of(const std::string& eta) {
  if (eta == "theory") return StepRule::Kind::theory;
  if (eta == "printed") return StepRule::Kind::printed;
  if (eta == "constant") return StepRule::Kind::constant;
  throw std::invalid_argument("unknown eta " + eta);
}

inline StepRule step_rule_of(const py::dict& options) {
  StepRule rule;
  rule.loss = &loss_of(option<std::string>(options, "loss"));
  rule.epsilon = option<double>(options, "epsilon");
  rule.rho = option<double>(options, "rho");
  rule.kind = kind_of(option<std::string>(options, "eta"));
  rule.eta0 = option<double>(options, "eta0");
  rule.averaging_by_step = option<bool>(options, "averaging_by_step");
  return rule;
}

// The arrays of a Lesson, held while the core reads them.
template <class T, class S>
struct LessonArrays {
  std::optional<Array<S>> scale;
  Array<double> target;
  std::optional<Array<double>> weight, curvature, base;
  Array<Offset> order;

  explicit LessonArrays(const py::dict& arrays)
      : scale(optional_array<S>(arrays, "scale")),
        target(array_option<double>(arrays, "target")),
        weight(optional_array<double>(arrays, "weight")),
        curvature(optional_array<double>(arrays, "curvature")),
        base(optional_array<double>(arrays, "base")),
        order(array_option<Offset>(arrays, "order")) {}

  Offset outputs() const { return target.ndim() == 2 ? target.shape(1) : 1; }

  Lesson<T, S> over(const Rows<T>& rows) const {
    if (outputs() < 1) throw std::invalid_argument("no outputs");
    expect_below(order, rows.n_rows, "order");
    return {rows,
            pointer(scale, rows.n_rows, 1, "scale"),
            pointer(std::optional(target), rows.n_rows, outputs(), "target"),
            pointer(weight, rows.n_rows, 1, "weight"),
            pointer(curvature, rows.n_rows, 1, "curvature"),
            pointer(base, rows.n_rows, outputs(), "base"),
            outputs(),
            order.data(),
            static_cast<Offset>(order.size())};
  }

 private:
  template <class V>
  static const V* pointer(const std::optional<Array<V>>& array, Offset rows, Offset width, const char* name) {
    if (!array) return nullptr;
    expect_size(*array, {rows, width}, name);
    return array->data();
  }
};

template <class T, class S>
void expect_curvature(const Lesson<T, S>& lesson) {
  if (lesson.curvature == nullptr) throw std::invalid_argument("this loss needs the curvature of the rows");
}

}  // namespace lacunar::bind
