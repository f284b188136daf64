// Names of losses and step sizes -> those of the core.
#pragma once

#include <stdexcept>
#include <string>

#include "lacunar/step_clock.hpp"

namespace lacunar::bind {

inline PointLoss loss_of(const std::string& name) {
  if (name == "hinge") return PointLoss::hinge;
  if (name == "squared_hinge") return PointLoss::squared_hinge;
  if (name == "logistic") return PointLoss::logistic;
  if (name == "squared") return PointLoss::squared;
  if (name == "absolute") return PointLoss::absolute;
  if (name == "epsilon_insensitive") return PointLoss::epsilon_insensitive;
  throw std::invalid_argument("unknown loss " + name);
}

inline StepRule::Kind kind_of(const std::string& eta) {
  if (eta == "theory") return StepRule::Kind::theory;
  if (eta == "printed") return StepRule::Kind::printed;
  if (eta == "constant") return StepRule::Kind::constant;
  if (eta == "inverse") return StepRule::Kind::inverse;
  throw std::invalid_argument("unknown eta " + eta);
}

}  // namespace lacunar::bind
