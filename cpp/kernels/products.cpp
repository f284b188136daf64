// Compiled once per instruction set into its own namespace: rows times a matrix, each row by the same instructions
// whatever rows come with it, which no BLAS promises.
#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "eight.inc"

constexpr int kTileRows = kParts == 1 ? 6 : kParts == 2 ? 2 : 1;  // what the registers hold
constexpr int kPanel = 16, kDotLanes = 32;

// kTileRows rows times one panel, summed down the depth.
template <class T>
inline void multiply_tile(const T* const* row, Offset depth, const double* panel, double* out) {
  Eight sum[kTileRows][2] = {};
  for (Offset k = 0; k < depth; ++k, panel += kPanel) {
    const Eight left = load(panel), right = load(panel + 8);
#pragma GCC unroll 6
    for (int r = 0; r < kTileRows; ++r) {
      const double x = static_cast<double>(row[r][k]);
      add(sum[r][0], x, left);
      add(sum[r][1], x, right);
    }
  }
  for (int r = 0; r < kTileRows; ++r) {
    store(sum[r][0], out + r * kPanel);
    store(sum[r][1], out + r * kPanel + 8);
  }
}

// The last tile repeats the last row, so that no row is summed by other code than another.
template <class T>
void panels(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out) {
  for (Offset from = 0; from < width; from += kPanel, b += kPanel * depth) {
    const Offset columns = width - from < kPanel ? width - from : kPanel;
    for (Offset i = 0; i < n; i += kTileRows) {
      const Offset rows = n - i < kTileRows ? n - i : kTileRows;
      const T* row[kTileRows];
      for (Offset r = 0; r < kTileRows; ++r) row[r] = a + (i + (r < rows ? r : rows - 1)) * depth;
      double tile[kTileRows * kPanel];
      multiply_tile(row, depth, b, tile);
      for (Offset r = 0; r < rows; ++r)
        for (Offset c = 0; c < columns; ++c) out[(i + r) * width + from + c] = tile[r * kPanel + c];
    }
  }
}

template <class T>
double dot(const T* x, const double* y, Offset depth) {
  double lanes[kDotLanes] = {};
  Offset k = 0;
  for (; k + kDotLanes <= depth; k += kDotLanes)
    for (int l = 0; l < kDotLanes; ++l) lanes[l] += static_cast<double>(x[k + l]) * y[k + l];
  for (int l = 0; k + l < depth; ++l) lanes[l] += static_cast<double>(x[k + l]) * y[k + l];
  for (int half = kDotLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

template <class T>
void dots(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out) {
  for (Offset i = 0; i < n; ++i)
    for (Offset j = 0; j < width; ++j) out[i * width + j] = dot(a + i * depth, b + j * depth, depth);
}

}  // namespace

void set_products(Kernels& to) {
  to.f32.product = {kPanel, panels<float>, dots<float>};
  to.f64.product = {kPanel, panels<double>, dots<double>};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
