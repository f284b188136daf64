// Compiled once per instruction set into its own namespace: sums over, and updates of, whole rows of a weight table.
#include "lacunar/kernels.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

#if defined(__GNUC__)
template <class T>
struct LaneOf {
  typedef T type __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
};
template <class T>
constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
#else
template <class T>
struct LaneOf {
  typedef T type;
};
template <class T>
constexpr int kLanes = 1;
#endif

template <class T>
double total(const typename LaneOf<T>::type& x) {
  const T* lanes = reinterpret_cast<const T*>(&x);
  double sum = 0;
  for (int k = 0; k < kLanes<T>; ++k) sum += static_cast<double>(lanes[k]);
  return sum;
}

// sum over the rows of table named by ids of row . x; width is a multiple of 16.
template <class T>
double dot_rows(const T* table, Offset stride, const Index* ids, int count, const T* x, Offset width) {
  using Lane = typename LaneOf<T>::type;
  constexpr int step = kLanes<T>;
  Lane sum[4] = {};
  for (int i = 0; i < count; ++i) {
    const T* row = table + ids[i] * stride;
    Offset k = 0;
    for (; k + 4 * step <= width; k += 4 * step)
      for (int u = 0; u < 4; ++u)
        sum[u] += *reinterpret_cast<const Lane*>(row + k + u * step) * *reinterpret_cast<const Lane*>(x + k + u * step);
    for (; k < width; k += step)
      sum[0] += *reinterpret_cast<const Lane*>(row + k) * *reinterpret_cast<const Lane*>(x + k);
  }
  return total<T>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// Rows of table += c x.
template <class T>
void add_rows(T* table, Offset stride, const Index* ids, int count, const T* x, Offset width, T c) {
  using Lane = typename LaneOf<T>::type;
  constexpr int step = kLanes<T>;
  for (int i = 0; i < count; ++i) {
    T* row = table + ids[i] * stride;
    for (Offset k = 0; k < width; k += step)
      *reinterpret_cast<Lane*>(row + k) += c * *reinterpret_cast<const Lane*>(x + k);
  }
}

}  // namespace

void add_scaled_f32(const float* __restrict row, double c, double* __restrict out, Offset count);
void add_scaled_f64(const double* __restrict row, double c, double* __restrict out, Offset count);

// Each entry by itself, by one product and one sum: the same bits wherever a row starts.
void add_scaled_f32(const float* __restrict row, double c, double* __restrict out, Offset count) {
  for (Offset k = 0; k < count; ++k) out[k] += c * static_cast<double>(row[k]);
}
void add_scaled_f64(const double* __restrict row, double c, double* __restrict out, Offset count) {
  for (Offset k = 0; k < count; ++k) out[k] += c * row[k];
}

extern const PrimalKernels<float> primal_f32;
const PrimalKernels<float> primal_f32 = {dot_rows<float>, add_rows<float>};
extern const PrimalKernels<double> primal_f64;
const PrimalKernels<double> primal_f64 = {dot_rows<double>, add_rows<double>};

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
