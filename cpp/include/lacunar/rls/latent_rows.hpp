// Latent coordinates of many partially observed rows in one basis.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// What is asked of every row; null pointers are not computed. Row i has the observed entries x_O and basis rows V_O.
struct LatentRows {
  double* latent;    // (n_rows, d): (V_O^T V_O + ridge I)^-1 V_O^T x_O; zero for an empty row
  double* residual;  // (n_rows): |x_O - V_O latent|^2
  double* inverse;   // (n_rows, d (d + 1) / 2): lower triangle of (V_O^T V_O + ridge I)^-1, packed by rows
};

// basis (n_cols, d), d <= 64. The number of rows whose matrix had to be
// rescued by a small ridge. O(o d^2 / 2 + d^3 / 3) a row of o entries; the same for any number of threads.
template <class T>
Offset latent_rows(const Rows<T>& rows, const double* basis, int d, double ridge, const LatentRows& out,
                   int n_threads);

}  // namespace lacunar
