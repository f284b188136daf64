// Compiled once per instruction set into its own namespace; everything but the two tables is internal, so that no
// object can lend its code to another. Vectors are GCC/Clang extensions; other compilers get one lane per "vector" and
// loops.
#include <cstdint>

#include "table.hpp"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "vectors.inc"

#if defined(__aarch64__)
constexpr int kTileRows = 8;  // 16 sums in 32 registers
#else
constexpr int kTileRows = kBytes == 64 ? 12 : kBytes == 32 ? 6 : 4;
#endif

#if defined(LACUNAR_VECTORS)
typedef std::uint32_t Words __attribute__((vector_size(kBytes), aligned(4), may_alias));
typedef std::uint8_t Bytes __attribute__((vector_size(kBytes), aligned(1), may_alias));
template <class T>
constexpr int kTileCols = 2 * kWidth<T>;
#else
typedef std::uint32_t Words;
typedef std::uint8_t Bytes;
template <class T>
constexpr int kTileCols = 8;
#endif

// One register tile of sums: kTileRows x kTileCols, over all d columns.
template <class T>
void sum_tile(const T* a, const T* b, Offset d, T* s, Offset leading) {
  using Vector = typename VectorOf<T>::type;
  constexpr int vectors = kTileCols<T> / kWidth<T>;
  Vector acc[kTileRows][vectors] = {};
  for (Offset k = 0; k < d; ++k) {
    Vector column[vectors];
    for (int v = 0; v < vectors; ++v) column[v] = *reinterpret_cast<const Vector*>(b + v * kWidth<T>);
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r)
      for (int v = 0; v < vectors; ++v) acc[r][v] += a[r] * column[v];
    a += kTileRows;
    b += kTileCols<T>;
  }
#pragma GCC unroll 12
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<Vector*>(s + r * leading + v * kWidth<T>) = acc[r][v];
}

// The bits of every word, in parts of it that add up without a carry for kWordsAtOnce words; `whole` adds the parts.
#if defined(__AVX512VPOPCNTDQ__)
constexpr Offset kWordsAtOnce = Offset{1} << 26;
inline Words bits_of(Words x) { return reinterpret_cast<Words>(_mm512_popcnt_epi32(reinterpret_cast<__m512i>(x))); }
inline Words whole(Words x) { return x; }
#else
constexpr Offset kWordsAtOnce = 31;  // of at most 8 bits a byte
#if defined(__AVX512BW__)
inline Words bits_of(Words x) {  // of half bytes, from a table
  const __m512i table = _mm512_set4_epi32(0x04030302, 0x03020201, 0x03020201, 0x02010100);
  const Words low = x & 0x0f0f0f0fu, high = (x >> 4) & 0x0f0f0f0fu;
  return reinterpret_cast<Words>(_mm512_shuffle_epi8(table, reinterpret_cast<__m512i>(low))) +
         reinterpret_cast<Words>(_mm512_shuffle_epi8(table, reinterpret_cast<__m512i>(high)));
}
#elif defined(__AVX2__)
inline Words bits_of(Words x) {  // of half bytes, from a table
  const __m256i table =
      _mm256_set_epi32(0x04030302, 0x03020201, 0x03020201, 0x02010100, 0x04030302, 0x03020201, 0x03020201, 0x02010100);
  const Words low = x & 0x0f0f0f0fu, high = (x >> 4) & 0x0f0f0f0fu;
  return reinterpret_cast<Words>(_mm256_shuffle_epi8(table, reinterpret_cast<__m256i>(low))) +
         reinterpret_cast<Words>(_mm256_shuffle_epi8(table, reinterpret_cast<__m256i>(high)));
}
#else
inline Words bits_of(Words x) {
  x = x - ((x >> 1) & 0x55555555u);
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  return (x + (x >> 4)) & 0x0f0f0f0fu;
}
#endif
inline Words whole(Words x) {
  x = (x & 0x00ff00ffu) + ((x >> 8) & 0x00ff00ffu);
  return (x + (x >> 16)) & 0xffffu;
}
#endif

// The same tile of counts: common bits of the mask words.
template <class T>
void count_tile(const std::uint32_t* a, const std::uint32_t* b, Offset words, std::int32_t* n, Offset leading) {
  constexpr int lanes = static_cast<int>(sizeof(Words)) / 4, vectors = kTileCols<T> / lanes;
  Words sum[kTileRows][vectors] = {};
  for (Offset w = 0; w < words;) {
    Words acc[kTileRows][vectors] = {};
    for (const Offset stop = words - w < kWordsAtOnce ? words : w + kWordsAtOnce; w < stop; ++w) {
      Words column[vectors];
      for (int v = 0; v < vectors; ++v) column[v] = *reinterpret_cast<const Words*>(b + v * lanes);
#pragma GCC unroll 12
      for (int r = 0; r < kTileRows; ++r)
        for (int v = 0; v < vectors; ++v) acc[r][v] += bits_of(a[r] & column[v]);
      a += kTileRows;
      b += kTileCols<T>;
    }
#pragma GCC unroll 12
    for (int r = 0; r < kTileRows; ++r)
      for (int v = 0; v < vectors; ++v) sum[r][v] += whole(acc[r][v]);
  }
#pragma GCC unroll 12
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<Words*>(n + r * leading + v * lanes) = sum[r][v];
}

template <class T>
void sparse_row(const Rows<T>& x, Offset row, const T* values, const std::uint8_t* seen, T* s, std::int32_t* n) {
  using Vector = typename VectorOf<T>::type;
  constexpr int width = kWidth<T>, vectors = kBytes / width, pieces = kBytes / static_cast<int>(sizeof(Bytes));
  Vector acc[vectors] = {};
  for (int j = 0; j < kBytes; ++j) n[j] = 0;
  for (Offset p = x.offsets[row], end = x.offsets[row + 1]; p < end;) {
    Bytes count[pieces] = {};  // one byte a pair: 255 entries cannot overflow
    for (const Offset stop = end - p < 255 ? end : p + 255; p < stop; ++p) {
      const Offset at = static_cast<Offset>(x.indices[p]) * kBytes;
      for (int v = 0; v < vectors; ++v)
        acc[v] += x.values[p] * *reinterpret_cast<const Vector*>(values + at + v * width);
      for (int i = 0; i < pieces; ++i)
        count[i] = static_cast<Bytes>(count[i] + reinterpret_cast<const Bytes*>(seen + at)[i]);
    }
    std::uint8_t counted[kBytes];
    for (int i = 0; i < pieces; ++i) reinterpret_cast<Bytes*>(counted)[i] = count[i];
    for (int j = 0; j < kBytes; ++j) n[j] += counted[j];
  }
  for (int v = 0; v < vectors; ++v) *reinterpret_cast<Vector*>(s + v * width) = acc[v];
}

template <class T>
void dense_block(const T* a, const T* b, const std::uint32_t* a_bits, const std::uint32_t* b_bits, Offset d,
                 Offset words, Offset rows, Offset cols, T* s, std::int32_t* n, Offset leading) {
  for (Offset c = 0; c < cols; c += kTileCols<T>)
    for (Offset r = 0; r < rows; r += kTileRows) {
      sum_tile(a + r * d, b + c * d, d, s + r * leading + c, leading);
      count_tile<T>(a_bits + r * words, b_bits + c * words, words, n + r * leading + c, leading);
    }
}

template <class T>
void sparse_rows(const Rows<T>& x, Offset first, Offset last, const T* values, const std::uint8_t* seen, T* s,
                 std::int32_t* n) {
  for (Offset row = first; row < last; ++row, s += kBytes, n += kBytes) sparse_row(x, row, values, seen, s, n);
}

template <class T>
void finish(const T* s, const std::int32_t* n, Offset count, const Form<T>& form, T row_scale, const T* col_scale,
            T* out) {
  const T on_sum = form.on_sum, on_count = form.on_count, constant = form.constant;
  const T* table = form.table;
  if (col_scale)
    for (Offset j = 0; j < count; ++j)
      out[j] =
          (on_sum * s[j] + (on_count * static_cast<T>(n[j]) + constant)) * table[n[j]] * (row_scale * col_scale[j]);
  else
    for (Offset j = 0; j < count; ++j)
      out[j] = (on_sum * s[j] + (on_count * static_cast<T>(n[j]) + constant)) * table[n[j]] * row_scale;
}

template <class T>
Offset meet(const Rows<T>& x, Offset i, const ByColumn<T>& y, Pair<T>* pairs, Index* touched) {
  Offset n_touched = 0;
  for (Offset p = x.offsets[i]; p < x.offsets[i + 1]; ++p) {
    const Offset k = x.indices[p];
    const T value = x.values[p];
    for (Offset at = y.offsets[k], end = y.offsets[k + 1]; at < end; ++at) {
      Pair<T>& pair = pairs[y.row[at]];
      touched[n_touched] = y.row[at];  // written always, kept when the pair is new: no branch
      n_touched += pair.n == 0;
      pair.s += value * y.value[at];
      ++pair.n;
    }
  }
  return n_touched;
}

template <class T>
void finish_pairs(const Pair<T>* pairs, const Index* touched, Offset count, const Form<T>& form, T row_scale,
                  const T* col_scale, T* out) {
  const T on_sum = form.on_sum, on_count = form.on_count, constant = form.constant;
  for (Offset t = 0; t < count; ++t) {
    const Index j = touched[t];
    const Pair<T> pair = pairs[j];
    const T scale = col_scale ? row_scale * col_scale[j] : row_scale;
    out[j] = (on_sum * pair.s + (on_count * static_cast<T>(pair.n) + constant)) * form.table[pair.n] * scale;
  }
}

#if defined(LACUNAR_VECTORS) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define LACUNAR_HAS_SHUFFLE
#endif
#endif

// A tile of 4 x 4: in registers where the compiler can shuffle, else element by element.
template <class T>
void transpose_tile(const T* from, Offset leading, T* to, Offset rows) {
#if defined(LACUNAR_HAS_SHUFFLE)
  typedef T Quad __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  const Quad a = *reinterpret_cast<const Quad*>(from), b = *reinterpret_cast<const Quad*>(from + leading);
  const Quad c = *reinterpret_cast<const Quad*>(from + 2 * leading),
             d = *reinterpret_cast<const Quad*>(from + 3 * leading);
  const Quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *reinterpret_cast<Quad*>(to) = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(to + rows) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  *reinterpret_cast<Quad*>(to + 2 * rows) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(to + 3 * rows) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
#else
  for (Offset r = 0; r < 4; ++r)
    for (Offset c = 0; c < 4; ++c) to[c * rows + r] = from[r * leading + c];
#endif
}

template <class T>
void transpose(const T* from, Offset rows, Offset cols, Offset leading, T* to) {
  const Offset whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  for (Offset r = 0; r < whole_rows; r += 4) {
    for (Offset c = 0; c < whole_cols; c += 4) transpose_tile(from + r * leading + c, leading, to + c * rows + r, rows);
    for (Offset c = whole_cols; c < cols; ++c)
      for (Offset k = r; k < r + 4; ++k) to[c * rows + k] = from[k * leading + c];
  }
  for (Offset r = whole_rows; r < rows; ++r)
    for (Offset c = 0; c < cols; ++c) to[c * rows + r] = from[r * leading + c];
}

template <class T>
void stream(const T* from, T* to, Offset count) {
  Offset j = 0;
#if defined(__AVX512F__) || defined(__AVX2__)
  constexpr Offset width = kBytes / static_cast<Offset>(sizeof(T));
  for (; j < count && reinterpret_cast<std::uintptr_t>(to + j) % kBytes; ++j) to[j] = from[j];
  for (; j + width <= count; j += width) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + j), _mm512_loadu_si512(from + j));
#else
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + j),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + j)));
#endif
  }
#endif
  for (; j < count; ++j) to[j] = from[j];
}

template <class T>
void set_typed(GramKernels<T>& to) {
  to = {kTileRows, kTileCols<T>,    kBytes,    dense_block<T>, sparse_rows<T>,
        meet<T>,   finish_pairs<T>, finish<T>, transpose<T>,   stream<T>};
}

}  // namespace

void set_gram(Kernels& to) {
  set_typed(to.f32.gram);
  set_typed(to.f64.gram);
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
