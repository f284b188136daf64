// The losses of linear learners, one output at a time. The table in losses.cpp is the only place that lists them.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

inline double sigmoid(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }
inline double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

// Dual solvers maximise over beta, one coordinate a row and output, and need (upper loss)*(-beta), the conjugate:
//   -y beta + beta^2 / (2 curvature upper) + epsilon |beta|   for low upper <= b <= high upper,
// without the square where curvature is 0 and without the last term where the loss has no tube; b is y beta of a margin
// loss and beta of the others. Of the logistic loss it is -a + a log(a / upper) + ..., an entropy, with a = y beta.
struct PointLoss {
  std::string_view name;
  double (*value)(double f, double y, double epsilon);
  double (*slope)(double f, double y, double epsilon);  // a subgradient in f; or null, where steps are not to be had
  bool is_margin = false;                               // whether y is +1 or -1 and only y f counts
  double low = 0, high = 0;
  double curvature = 0;   // of a loss whose slope grows with f, so that a step must be capped; 0: the slope is bounded
  bool has_kink = false;  // whether the slope is bounded and jumps at y, or at the ends of a tube about it
  bool has_tube = false;
  bool is_logistic = false;
  // What solvers look for, beside the slope, and refuse a loss without.
  bool has_dual = false;         // the conjugate is the one above: coordinate ascent
  bool has_gram_dual = false;    // dual.cpp has the loss inline: ascent over a Gram
  bool has_closed_form = false;  // the minimiser is linear in the targets: ridge over a Gram

  // The curvature that the conjugate adds to a coordinate's own k(x, x).
  double ridge(double upper) const { return curvature > 0 ? 1 / (curvature * upper) : 0; }
};

std::span<const PointLoss> all_losses();

// Null where the table has no such name.
const PointLoss* find_loss(std::string_view name);

// out (n): the losses at f (n) for targets y (n).
void loss_values(const PointLoss& loss, const double* f, const double* y, Offset n, double epsilon, double* out);

// The dual coordinate beta that maximises the dual of 1/2 |v|^2 + upper loss(f) when all others stay, f being the value
// at the beta given and k = k(x, x).
double best_beta(const PointLoss& loss, double beta, double f, double y, double upper, double k, double epsilon);

// upper loss(f) + (upper loss)*(-beta) + beta f >= 0: summed over coordinates it is the duality gap.
double coordinate_gap(const PointLoss& loss, double beta, double f, double y, double upper, double epsilon);

// (2 outputs): sums over rows of coordinate_gap, then of upper loss(f), for values f and coordinates beta (n, outputs).
std::vector<double> coordinate_sums(const double* beta, const double* f, const double* y, const double* upper, Offset n,
                                    Offset outputs, const PointLoss& loss, double epsilon);

}  // namespace lacunar
