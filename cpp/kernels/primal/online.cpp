// Compiled once per instruction set into its own namespace: a support row against a group of rows that lie side by
// side.
#include "table.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "vectors.inc"

#if defined(LACUNAR_VECTORS)
template <int L>
struct BytesOf {
  typedef std::uint8_t type __attribute__((vector_size(L), aligned(1), may_alias));
};
#else
template <int L>
struct BytesOf {
  struct type {
    std::uint8_t lane[L] = {};
    type& operator+=(const type& other) {
      for (int l = 0; l < L; ++l) lane[l] = static_cast<std::uint8_t>(lane[l] + other.lane[l]);
      return *this;
    }
  };
};
#endif
constexpr int kChunk = 255;  // entries that a byte can count

// s, n (L) = sums and counts over at most kChunk entries, added to what is there if `begun`.
template <class T, int L>
inline void add_entries(const Index* at, const T* x, int entries, const LaneGroup<T>& group, bool begun, T* s,
                        std::int32_t* n) {
  using Vector = typename VectorOf<T>::type;
  using Bytes = typename BytesOf<L>::type;
  constexpr int vectors = L / kWidth<T>;
  Vector sum[vectors] = {};
  Bytes common = {};
  if (begun)
    for (int v = 0; v < vectors; ++v) sum[v] = *reinterpret_cast<const Vector*>(s + v * kWidth<T>);
  for (int p = 0; p < entries; ++p) {
    const Offset from = static_cast<Offset>(at[p]) * L;
    for (int v = 0; v < vectors; ++v)
      sum[v] += x[p] * *reinterpret_cast<const Vector*>(group.values + from + v * kWidth<T>);
    common += *reinterpret_cast<const Bytes*>(group.seen + from);
  }
  for (int v = 0; v < vectors; ++v) *reinterpret_cast<Vector*>(s + v * kWidth<T>) = sum[v];
  alignas(64) std::uint8_t counted[L];
  *reinterpret_cast<Bytes*>(counted) = common;
  if (begun)
    for (int l = 0; l < L; ++l) n[l] += counted[l];
  else
    for (int l = 0; l < L; ++l) n[l] = counted[l];
}

// g by count: from two registers where the table fits into them.
template <class T>
class LookUp {
 public:
  LookUp(const Form<T>& form, [[maybe_unused]] int size) : table_(form.table) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      small_ = size <= 32;
      const auto entries = small_ ? (std::uint64_t{1} << size) - 1 : 0;
      low_ = _mm512_maskz_loadu_ps(static_cast<__mmask16>(entries), table_);
      high_ = _mm512_maskz_loadu_ps(static_cast<__mmask16>(entries >> 16), table_ + 16);
    }
#endif
  }

  // g (L) of n (L)
  template <int L>
  void find(const std::int32_t* n, T* g) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4 && L % 16 == 0)
      if (small_) {
        for (int l = 0; l < L; l += 16)
          _mm512_storeu_ps(g + l, _mm512_permutex2var_ps(low_, _mm512_loadu_si512(n + l), high_));
        return;
      }
#endif
    for (int l = 0; l < L; ++l) g[l] = table_[n[l]];
  }

 private:
  const T* table_;
#if defined(__AVX512F__)
  bool small_ = false;
  __m512 low_, high_;
#endif
};

template <class T>
void add_scaled(const T* row, double c, double* out, int count) {
  for (int l = 0; l < count; ++l) out[l] += c * static_cast<double>(row[l]);
}

template <class T>
void compose(const RowKernel<T>& kernel, T* k, int count) {
  for (int l = 0; l < count; ++l) {
    const T base = (k[l] + kernel.coef0) * kernel.shrink;
    T power = base;
    for (int p = 1; p < kernel.degree; ++p) power *= base;
    k[l] = power;
  }
}

// Entries whose column some lane has observed, by slot: without a branch, which nothing could predict.
template <class T>
int keep_met(const Index* column, const T* x, int count, const Index* slot, Index* at, T* met_values) {
  int met = 0;
  for (int p = 0; p < count; ++p) {
    at[met] = slot[column[p]];
    met_values[met] = x[p];
    met += at[met] != 0;
  }
  return met;
}

// s, n (L) of one support row.
template <class T, int L>
inline void meet(const Rows<T>& support, Offset row, const LaneGroup<T>& group, T* s, std::int32_t* n) {
  const Offset first = support.offsets[row], end = support.offsets[row + 1];
  for (Offset p = first; p == first || p < end; p += kChunk) {  // once even for a row with nothing observed
    const int entries = static_cast<int>(end - p < kChunk ? end - p : kChunk);
    if (group.slot == nullptr) {
      add_entries<T, L>(support.indices + p, support.values + p, entries, group, p > first, s, n);
    } else {
      Index at[kChunk + 1];
      T x[kChunk + 1];
      const int met = keep_met(support.indices + p, support.values + p, entries, group.slot, at, x);
      add_entries<T, L>(at, x, met, group, p > first, s, n);
    }
  }
}

template <class T, int L>
void expand(const Rows<T>& support, const T* row_scale, const double* coef, Offset first, Offset last, Offset outputs,
            const LaneGroup<T>& group, const RowKernel<T>& kernel, double* sums) {
  const Form<T>& form = kernel.form;
  const LookUp<T> look_up(form, kernel.table_size);
  const T on_sum = form.on_sum, on_count = form.on_count, constant = form.constant;
  alignas(64) T s[L] = {}, g[L], k[L];
  alignas(64) std::int32_t n[L] = {};
  for (Offset j = first; j < last; ++j) {
    meet<T, L>(support, j, group, s, n);
    look_up.template find<L>(n, g);
    for (int l = 0; l < L; ++l) k[l] = (on_sum * s[l] + (on_count * static_cast<T>(n[l]) + constant)) * g[l];
    if (row_scale != nullptr)
      for (int l = 0; l < L; ++l) k[l] *= row_scale[j] * group.scale[l];
    if (kernel.degree > 1) compose(kernel, k, L);
    for (Offset o = 0; o < outputs; ++o)
      if (coef[j * outputs + o] != 0) add_scaled(k, coef[j * outputs + o], sums + o * L, L);
  }
}

}  // namespace

void set_online(Kernels& to) {
  to.f32.online = {{kWidth<float>, expand<float, kWidth<float>>}, {kBytes, expand<float, kBytes>}};
  to.f64.online = {{kWidth<double>, expand<double, kWidth<double>>}, {kBytes, expand<double, kBytes>}};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
