#include "lacunar/meg/factor_solve.hpp"

#include <algorithm>
#include <vector>

#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {
namespace {

constexpr int kTogether = 4;  // columns solved side by side: the factor is read once for them
constexpr int kSums = 4;      // running sums of a row of L^T, so that none waits for the one before

constexpr Offset kColumns = 256;  // of L, between two looks for an interrupt

void look_at(const Rows<double>& lower, Offset j, Offset width, InterruptCheck& check) {
  check.after((lower.offsets[std::min(j + kColumns, lower.n_rows)] - lower.offsets[j] + kColumns) * width);
}

// x (n, W) <- L^-1 x.
template <int W>
void forward(const Rows<double>& lower, double* x, InterruptCheck& check) {
  for (Offset j = 0; j < lower.n_rows; ++j) {
    if (j % kColumns == 0) look_at(lower, j, W, check);
    const double* own = x + j * W;
    for (Offset p = lower.offsets[j]; p < lower.offsets[j + 1]; ++p) {
      double* to = x + static_cast<Offset>(lower.indices[p]) * W;
      for (int w = 0; w < W; ++w) to[w] -= lower.values[p] * own[w];
    }
  }
}

// x (n, W) <- L^-T x.
template <int W>
void backward(const Rows<double>& lower, double* x, InterruptCheck& check) {
  for (Offset j = lower.n_rows; j-- > 0;) {
    if (j % kColumns == 0) look_at(lower, j, W, check);
    double sum[kSums][W] = {};
    Offset p = lower.offsets[j];
    const Offset end = lower.offsets[j + 1];
    for (; p + kSums <= end; p += kSums)
      for (int s = 0; s < kSums; ++s) {
        const double* from = x + static_cast<Offset>(lower.indices[p + s]) * W;
        for (int w = 0; w < W; ++w) sum[s][w] += lower.values[p + s] * from[w];
      }
    for (; p < end; ++p) {
      const double* from = x + static_cast<Offset>(lower.indices[p]) * W;
      for (int w = 0; w < W; ++w) sum[0][w] += lower.values[p] * from[w];
    }
    for (int w = 0; w < W; ++w) x[j * W + w] -= (sum[0][w] + sum[1][w]) + (sum[2][w] + sum[3][w]);
  }
}

// W columns of right and out, whose rows lie k apart.
template <int W>
void solve(const Rows<double>& lower, const double* pivots, const Index* place, const double* right, Offset k,
           double* x, double* out, InterruptCheck& check) {
  const Offset n = lower.n_rows;
  for (Offset i = 0; i < n; ++i)
    for (int w = 0; w < W; ++w) x[static_cast<Offset>(place[i]) * W + w] = right[i * k + w];
  forward<W>(lower, x, check);
  for (Offset j = 0; j < n; ++j)
    for (int w = 0; w < W; ++w) x[j * W + w] /= pivots[j];
  backward<W>(lower, x, check);
  for (Offset i = 0; i < n; ++i)
    for (int w = 0; w < W; ++w) out[i * k + w] = x[static_cast<Offset>(place[i]) * W + w];
}

}  // namespace

void factor_solve(const Rows<double>& lower, const double* pivots, const Index* place, const double* right, Offset k,
                  double* out) {
  std::vector<double> x(static_cast<std::size_t>(lower.n_rows * kTogether));
  InterruptCheck check;
  Offset first = 0;
  for (; first + kTogether <= k; first += kTogether)
    solve<kTogether>(lower, pivots, place, right + first, k, x.data(), out + first, check);
  for (; first < k; ++first) solve<1>(lower, pivots, place, right + first, k, x.data(), out + first, check);
}

}  // namespace lacunar
