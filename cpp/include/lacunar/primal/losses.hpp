// The losses of linear learners, one output at a time: y is +1 or -1 for the first three, a number for the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

enum class PointLoss { hinge, squared_hinge, logistic, squared, absolute, epsilon_insensitive };

inline double sigmoid(double z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }
inline double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

// Loss at f, and its (sub)gradient in f.
double loss_at(PointLoss loss, double f, double y, double epsilon);
double slope_at(PointLoss loss, double f, double y, double epsilon);

// Whether the slope grows with f, so that a step must be capped by the curvature.
bool is_quadratic(PointLoss loss);

// The dual coordinate beta that maximises the dual of 1/2 |v|^2 + upper loss(f) when all others stay, f being the value
// at the beta given and curvature k(x, x).
double best_beta(PointLoss loss, double beta, double f, double y, double upper, double curvature, double epsilon);

// upper loss(f) + (upper loss)*(-beta) + beta f >= 0: summed over coordinates it is the duality gap.
double coordinate_gap(PointLoss loss, double beta, double f, double y, double upper, double epsilon);

// (2 outputs): sums over rows of coordinate_gap, then of upper loss(f), for values f and coordinates beta (n, outputs).
std::vector<double> coordinate_sums(const double* beta, const double* f, const double* y, const double* upper, Offset n,
                                    Offset outputs, PointLoss loss, double epsilon);

}  // namespace lacunar
