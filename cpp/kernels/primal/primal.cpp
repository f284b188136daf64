// Compiled once per instruction set into its own namespace: sums over, and updates of, whole rows of a weight table.
#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "bits.inc"
#include "vectors.inc"

template <class T>
double total(const typename VectorOf<T>::type& x) {
  const T* lanes = reinterpret_cast<const T*>(&x);
  double sum = 0;
  for (int k = 0; k < kWidth<T>; ++k) sum += static_cast<double>(lanes[k]);
  return sum;
}

#if defined(__AVX512F__)
constexpr int kMost = 8;  // vectors of x in registers beside as many sums
#else
constexpr int kMost = 6;
#endif

// N vectors of every row at once: those of x are read once, not once a row.
template <class T, int N>
double dot_part(const T* table, Offset stride, const Index* ids, int count, const T* x) {
  using Vector = typename VectorOf<T>::type;
  constexpr int step = kWidth<T>;
  Vector part[N], sum[N] = {};
  for (int u = 0; u < N; ++u) part[u] = *reinterpret_cast<const Vector*>(x + u * step);
  for (int i = 0; i < count; ++i) {
    const T* row = table + ids[i] * stride;
    for (int u = 0; u < N; ++u) sum[u] += *reinterpret_cast<const Vector*>(row + u * step) * part[u];
  }
  for (int u = 1; u < N; ++u) sum[0] += sum[u];
  return total<T>(sum[0]);
}

template <class T, int N>
void add_part(T* table, Offset stride, const Index* ids, int count, const T* x, T c) {
  using Vector = typename VectorOf<T>::type;
  constexpr int step = kWidth<T>;
  Vector part[N];
  for (int u = 0; u < N; ++u) part[u] = c * *reinterpret_cast<const Vector*>(x + u * step);
  for (int i = 0; i < count; ++i) {
    T* row = table + ids[i] * stride;
    for (int u = 0; u < N; ++u) *reinterpret_cast<Vector*>(row + u * step) += part[u];
  }
}

// x (64, N vectors) holds the waiting rows with their coefficients in.
template <class T, int N>
void add_waiting_part(T* table, Offset stride, const WaitingRows<T>& rows, const T* x) {
  using Vector = typename VectorOf<T>::type;
  constexpr int step = kWidth<T>;
  for (Offset r = 0; r < rows.table_rows; ++r) {
    std::uint64_t left = rows.met[r] & rows.wanted;
    if (left == 0) continue;
    T* row = table + r * stride;
    Vector sum[N];
    for (int u = 0; u < N; ++u) sum[u] = *reinterpret_cast<const Vector*>(row + u * step);
    for (; left != 0; left &= left - 1) {
      const T* from = x + lowest(left) * N * step;
      for (int u = 0; u < N; ++u) sum[u] += *reinterpret_cast<const Vector*>(from + u * step);
    }
    for (int u = 0; u < N; ++u) *reinterpret_cast<Vector*>(row + u * step) = sum[u];
  }
}

template <class T>
using DotPart = double (*)(const T*, Offset, const Index*, int, const T*);
template <class T>
using AddPart = void (*)(T*, Offset, const Index*, int, const T*, T);
template <class T>
constexpr DotPart<T> kDotParts[] = {dot_part<T, 1>, dot_part<T, 2>, dot_part<T, 3>, dot_part<T, 4>,
                                    dot_part<T, 5>, dot_part<T, 6>, dot_part<T, 7>, dot_part<T, 8>};
template <class T>
constexpr AddPart<T> kAddParts[] = {add_part<T, 1>, add_part<T, 2>, add_part<T, 3>, add_part<T, 4>,
                                    add_part<T, 5>, add_part<T, 6>, add_part<T, 7>, add_part<T, 8>};
template <class T>
using AddWaitingPart = void (*)(T*, Offset, const WaitingRows<T>&, const T*);
template <class T>
constexpr AddWaitingPart<T> kAddWaitingParts[] = {
    add_waiting_part<T, 1>, add_waiting_part<T, 2>, add_waiting_part<T, 3>, add_waiting_part<T, 4>,
    add_waiting_part<T, 5>, add_waiting_part<T, 6>, add_waiting_part<T, 7>, add_waiting_part<T, 8>};

// A row falls into parts of at most kMost vectors, as few and as even as can be.
template <class T>
Offset parts(Offset width) {
  return (width / kWidth<T> + kMost - 1) / kMost;
}

template <class T>
Offset part_start(Offset width, Offset part) {
  return part * (width / kWidth<T>) / parts<T>(width) * kWidth<T>;
}

// Calls visit(first, first of part `begin`, vectors) for the parts [begin, end) of a row.
template <class T, class Visit>
void in_parts(Offset width, Offset begin, Offset end, Visit visit) {
  Offset first = part_start<T>(width, begin);
  for (Offset part = begin, start = first; part < end; ++part) {
    const Offset last = part_start<T>(width, part + 1);
    visit(first, first - start, (last - first) / kWidth<T>);
    first = last;
  }
}

// sum over the rows of table named by ids of row . x; width is a multiple of 16.
template <class T>
double dot_rows(const T* table, Offset stride, const Index* ids, int count, const T* x, Offset width) {
  double sum = 0;
  in_parts<T>(width, 0, parts<T>(width), [&](Offset from, Offset, Offset vectors) {
    sum += kDotParts<T>[vectors - 1](table + from, stride, ids, count, x + from);
  });
  return sum;
}

template <class T>
void dot_some(const T* table, Offset stride, const Index* ids, int count, const T* x, Offset width, Offset begin,
              Offset end, double* sums) {
  in_parts<T>(width, begin, end, [&](Offset from, Offset at, Offset vectors) {
    *sums++ = kDotParts<T>[vectors - 1](table + at, stride, ids, count, x + from);
  });
}

// Parts of rows of table += c x.
template <class T>
void add_rows(T* table, Offset stride, const Index* ids, int count, const T* x, Offset width, Offset begin, Offset end,
              T c) {
  in_parts<T>(width, begin, end, [&](Offset from, Offset at, Offset vectors) {
    kAddParts<T>[vectors - 1](table + at, stride, ids, count, x + from, c);
  });
}

// Products are rounded before they are added, as in add_part.
template <class T>
void add_waiting(T* table, Offset stride, const WaitingRows<T>& rows, Offset width, Offset begin, Offset end) {
  alignas(64) T scaled[64 * kMost * kWidth<T>];
  in_parts<T>(width, begin, end, [&](Offset from, Offset at, Offset vectors) {
    const Offset size = vectors * kWidth<T>;
    for (std::uint64_t left = rows.wanted; left != 0; left &= left - 1) {
      const Offset i = lowest(left);
      for (Offset k = 0; k < size; ++k) scaled[i * size + k] = rows.c[i] * rows.x[i * width + from + k];
    }
    kAddWaitingParts<T>[vectors - 1](table + at, stride, rows, scaled);
  });
}

}  // namespace

void set_primal(Kernels& to) {
  to.f32.primal = {parts<float>,    part_start<float>, dot_rows<float>,
                   dot_some<float>, add_rows<float>,   add_waiting<float>};
  to.f64.primal = {parts<double>,    part_start<double>, dot_rows<double>,
                   dot_some<double>, add_rows<double>,   add_waiting<double>};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
