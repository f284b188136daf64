// Compiled once per instruction set into its own namespace: a row, or a piece of a column, of a dense table with NaN
// where missing; entries standardised.
#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

template <class S>
struct CountOf;  // as wide as the cells, so that both fit the same vectors
template <>
struct CountOf<float> {
  using type = std::int32_t;
};
template <>
struct CountOf<double> {
  using type = std::int64_t;
};

// Beyond it what is standardised counts as not finite: products of two such numbers, or sums of some, would not be.
template <class T>
constexpr T kFar = static_cast<T>(sizeof(T) == sizeof(double) ? 1e150 : 1e30);
template <class T>
constexpr T kLargest = static_cast<T>(sizeof(T) == sizeof(double) ? 0x1.fffffffffffffp1023 : 0x1.fffffep127);

// x == x but for NaN, x - x == 0 but for NaN and infinities.
template <class S>
Offset count(const S* row, const double* scale, Offset n_cols, bool* infinite) {
  typename CountOf<S>::type seen = 0, finite = 0;
  for (Offset j = 0; j < n_cols; ++j) {
    seen += row[j] == row[j];
    finite += row[j] - row[j] == 0;
  }
  *infinite |= seen != finite;
  if (scale == nullptr) return seen;
  Offset n_kept = 0;
  for (Offset j = 0; j < n_cols; ++j) n_kept += (row[j] == row[j]) & (scale[j] == scale[j]);
  return n_kept;
}

template <class S>
bool count_column(const S* cells, Offset n, Offset* counts) {
  typename CountOf<S>::type away = 0;
  for (Offset i = 0; i < n; ++i) {
    const bool seen = cells[i] == cells[i];
    counts[i] += seen;
    away += seen != (cells[i] - cells[i] == 0);
  }
  return away == 0;
}

template <class S, class T>
bool read(const S* row, const double* center, const double* scale, Offset n_cols, T* out) {
  if (scale == nullptr)
    for (Offset j = 0; j < n_cols; ++j) out[j] = static_cast<T>(row[j]);
  else
    for (Offset j = 0; j < n_cols; ++j) out[j] = static_cast<T>((static_cast<double>(row[j]) - center[j]) / scale[j]);
  const T most = scale == nullptr ? kLargest<T> : kFar<T>;
  typename CountOf<T>::type away = 0;
  for (Offset j = 0; j < n_cols; ++j) away += (out[j] == out[j]) != ((-most <= out[j]) & (out[j] <= most));
  return away == 0;
}

// Every cell is written, and the next one over it where it is missing: no branch depends on the data. It ends with the
// last entry, so that nothing is written behind it.
template <class T>
Offset keep(const T* row, Offset n_cols, Offset n_entries, Index* indices, T* values) {
  Offset k = 0;
  if (n_entries == n_cols) {
    for (Offset j = 0; j < n_cols; ++j) indices[j] = static_cast<Index>(j), values[j] = row[j], k += row[j] == row[j];
    return k;
  }
  for (Offset j = 0; j < n_cols && k < n_entries; ++j) {
    indices[k] = static_cast<Index>(j);
    values[k] = row[j];
    k += row[j] == row[j];
  }
  return k;
}

template <class S, class T>
bool standardise(const S* values, const Index* columns, const Columns& by, Offset count, T* out) {
  const T most = static_cast<T>(by.bound);
  const T far = by.bound - by.bound == 0 ? kLargest<T> : kFar<T>;
  typename CountOf<T>::type away = 0;
  for (Offset p = 0; p < count; ++p) {
    const Index j = columns[p];
    const T scaled = static_cast<T>((static_cast<double>(values[p]) - by.center[j]) / by.scale[j]);
    away |= !((-far <= scaled) & (scaled <= far));
    const T above = scaled < -most ? -most : scaled;
    out[p] = above > most ? most : above;
  }
  return away == 0;
}

}  // namespace

void set_dense(Kernels& to) {
  to.f32.dense = {count<float>, count_column<float>,       read<float, float>,        read<float, double>,
                  keep<float>,  standardise<float, float>, standardise<float, double>};
  to.f64.dense = {count<double>, count_column<double>,       read<double, float>,        read<double, double>,
                  keep<double>,  standardise<double, float>, standardise<double, double>};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
