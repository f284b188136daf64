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

template <int width>
struct VectorFor {
#if defined(LACUNAR_VECTORS)
  typedef double type __attribute__((vector_size(8 * width), aligned(8), may_alias));
#endif
};
template <>
struct VectorFor<1> {
  typedef double type;
};

// One column of v or out, in the widest vectors that it fills.
template <int lanes>
struct Lanes {
  static constexpr int width = lanes < kWidth ? lanes : kWidth, parts = lanes / width;
  typename VectorFor<width>::type part[parts];
  void add(double factor, const Lanes& x) {
    for (int s = 0; s < parts; ++s) part[s] += factor * x.part[s];
  }
};

// A row's products with v first, in several running sums so that none waits for the one before, and then what they add.
template <class T, int lanes>
void gram_rows_of(const Rows<T>& x, Offset first, Offset last, const double* v, double* out) {
  constexpr int sums = Lanes<lanes>::parts < 4 ? 4 : 2;  // what the registers hold
  const Lanes<lanes>* const columns = reinterpret_cast<const Lanes<lanes>*>(v);
  Lanes<lanes>* const to = reinterpret_cast<Lanes<lanes>*>(out);
  for (Offset i = first; i < last; ++i) {
    const Offset end = x.offsets[i + 1];
    Lanes<lanes> sum[sums] = {};
    Offset p = x.offsets[i];
    for (; p + sums <= end; p += sums)
#pragma GCC unroll 4
      for (int s = 0; s < sums; ++s) sum[s].add(static_cast<double>(x.values[p + s]), columns[x.indices[p + s]]);
    for (; p < end; ++p) sum[0].add(static_cast<double>(x.values[p]), columns[x.indices[p]]);
    for (int s = 1; s < sums; ++s) sum[0].add(1.0, sum[s]);
    for (p = x.offsets[i]; p < end; ++p) to[x.indices[p]].add(static_cast<double>(x.values[p]), sum[0]);
  }
}

template <class T>
void gram_rows(const Rows<T>& x, Offset first, Offset last, const double* v, int lanes, double* out) {
  if (lanes == 1) return gram_rows_of<T, 1>(x, first, last, v, out);
  if (lanes == 2) return gram_rows_of<T, 2>(x, first, last, v, out);
  if (lanes == 4) return gram_rows_of<T, 4>(x, first, last, v, out);
  gram_rows_of<T, 8>(x, first, last, v, out);
}

}  // namespace

void set_products(Kernels& to) {
  to.f32.product = {kPanel, panels<float>, dots<float>, gram_rows<float>};
  to.f64.product = {kPanel, panels<double>, dots<double>, gram_rows<double>};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
