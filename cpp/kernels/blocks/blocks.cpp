// Compiled once per instruction set into its own namespace: stored blocks of rows as columns and values.
#include "table.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {

namespace {

#include "bits.inc"

// Where the reading of gaps stands: the column of the last entry, and the escapes that are left.
struct Place {
  Offset column;
  const std::uint32_t *escape, *last_escape;
};

// Entries [from, to) of one row. False where an escape is missing or 0; the column is checked by who calls.
template <class Gap>
inline bool step(const Gap* gaps, Offset from, Offset to, Place& at, Index* columns) {
  for (Offset p = from; p < to; ++p) {
    Offset gap = gaps[p];
    if (gap == 0) {
      if (at.escape == at.last_escape) return false;
      gap = *at.escape++;
      if (gap == 0) return false;
    }
    at.column += gap;
    columns[p] = static_cast<Index>(at.column);
  }
  return true;
}

#if defined(__AVX2__)

constexpr Offset kLanes = 8;

inline __m256i load_gaps(const std::uint8_t* gaps, int& zeros) {
  const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(gaps));
  zeros = _mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_setzero_si128())) & 0xff;
  return _mm256_cvtepu8_epi32(x);
}

inline __m256i load_gaps(const std::uint16_t* gaps, int& zeros) {
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(gaps));
  const __m128i zero = _mm_cmpeq_epi16(x, _mm_setzero_si128());
  zeros = _mm_movemask_epi8(_mm_packs_epi16(zero, _mm_setzero_si128())) & 0xff;
  return _mm256_cvtepu16_epi32(x);
}

inline __m256i running_sums(__m256i x) {
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
  const __m256i low = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3));
  return _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), low, 0xf0));
}

// One row, eight gaps at a time, of which the last may belong to rows that come: what is written there is written
// again. Rows are short enough that no sum of gaps without escapes wraps around 32 bits.
template <class Gap>
inline bool vector_row(const Gap* gaps, Offset begin, Offset end, Offset n_entries, Offset n_cols, Place& at,
                       Index* columns) {
  __m256i carry = _mm256_set1_epi32(-1);
  Offset p = begin;
  for (; p < end && p + kLanes <= n_entries; p += kLanes) {
    const Offset live = end - p < kLanes ? end - p : kLanes;
    int zeros = 0;
    const __m256i x = load_gaps(gaps + p, zeros);
    if (zeros & ((1 << live) - 1)) {
      if (p > begin) at.column = static_cast<std::uint32_t>(columns[p - 1]);
      if (!step(gaps, p, p + live, at, columns) || at.column >= n_cols) return false;
      carry = _mm256_set1_epi32(static_cast<int>(at.column));
    } else {
      const __m256i sums = _mm256_add_epi32(running_sums(x), carry);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(columns + p), sums);
      carry = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7));
    }
  }
  if (p >= end) {
    at.column = static_cast<std::uint32_t>(columns[end - 1]);
    return true;
  }
  if (p > begin) at.column = static_cast<std::uint32_t>(columns[p - 1]);
  return step(gaps, p, end, at, columns);
}

#endif

template <class Gap>
Offset columns_of_gaps(const Gap* gaps, const StoredRows& rows) {
  Place at{-1, rows.escapes, rows.escapes + rows.n_escapes};
  for (Offset i = 0; i < rows.n_rows; ++i) {
    const Offset begin = rows.offsets[i], end = rows.offsets[i + 1];
    at.column = -1;
    if (begin == end) continue;
#if defined(__AVX2__)
    constexpr Offset longest = sizeof(Gap) == 1 ? 1 << 22 : 1 << 14;
    const bool sound = end - begin <= longest
                           ? vector_row(gaps, begin, end, rows.offsets[rows.n_rows], rows.n_cols, at, rows.columns)
                           : step(gaps, begin, end, at, rows.columns);
#else
    const bool sound = step(gaps, begin, end, at, rows.columns);
#endif
    if (!sound || at.column >= rows.n_cols) return i;
  }
  return at.escape == at.last_escape ? -1 : rows.n_rows;
}

// Up to eight bytes as a number, the first the lowest.
inline std::uint64_t word_at(const std::uint8_t* bytes, Offset count) {
  std::uint64_t word = 0;
  for (Offset k = 0; k < count; ++k) word |= std::uint64_t{bytes[k]} << 8 * k;
  return word;
}

Offset columns_of_bits(const std::uint8_t* bits, const StoredRows& rows) {
  const Offset width = (rows.n_cols + 7) / 8;
  for (Offset i = 0; i < rows.n_rows; ++i, bits += width) {
    Offset p = rows.offsets[i];
    for (Offset at = 0; at < width; at += 8) {
      std::uint64_t word = width - at < 8 ? word_at(bits + at, width - at) : word_at(bits + at, 8);
      for (; word != 0; word &= word - 1) {
        const Offset column = 8 * at + lowest(word);
        if (p == rows.offsets[i + 1] || column >= rows.n_cols) return i;
        rows.columns[p++] = static_cast<Index>(column);
      }
    }
    if (p != rows.offsets[i + 1]) return i;
  }
  return rows.n_escapes == 0 ? -1 : rows.n_rows;
}

template <class To, class From>
inline To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From));
  union {
    From value;
    To bits;
  } both = {value};
  return both.bits;
}

constexpr std::uint32_t kInfinite = 0x7f800000, kInfiniteHalf = 0x7c00;
constexpr std::uint64_t kInfiniteDouble = std::uint64_t{0x7ff} << 52;

template <class T>
bool of_floats(const float* from, Offset count, T* to) {
  std::uint32_t bad = 0;
  for (Offset p = 0; p < count; ++p) {
    bad |= (bits_of<std::uint32_t>(from[p]) & kInfinite) == kInfinite;
    to[p] = static_cast<T>(from[p]);
  }
  return bad == 0;
}

bool of_doubles(const double* from, Offset count, double* to) {
  std::uint64_t bad = 0;
  for (Offset p = 0; p < count; ++p) {
    bad |= (bits_of<std::uint64_t>(from[p]) & kInfiniteDouble) == kInfiniteDouble;
    to[p] = from[p];
  }
  return bad == 0;
}

// The exponent of a half lies 112 below that of a float; the product is exact, subnormal halves included.
template <class T>
bool of_halves(const std::uint16_t* from, Offset count, T* to) {
  const float raise = bits_of<float>(std::uint32_t{(127 + 112) << 23});
  std::uint32_t bad = 0;
  for (Offset p = 0; p < count; ++p) {
    const std::uint32_t half = from[p];
    bad |= (half & kInfiniteHalf) == kInfiniteHalf;
    const std::uint32_t size = bits_of<std::uint32_t>(bits_of<float>((half & 0x7fff) << 13) * raise);
    to[p] = static_cast<T>(bits_of<float>(size | (half & 0x8000) << 16));
  }
  return bad == 0;
}

template <class T>
bool of_whole(const std::int8_t* from, Offset count, T* to) {
  for (Offset p = 0; p < count; ++p) to[p] = static_cast<T>(from[p]);
  return true;
}

template <class T>
bool of_scaled(const std::int8_t* from, const Index* columns, const float* scale, Offset count, T* to) {
  std::uint32_t bad = 0;
  for (Offset p = 0; p < count; ++p) {
    const float value = static_cast<float>(from[p]) * scale[columns[p]];
    bad |= (bits_of<std::uint32_t>(value) & kInfinite) == kInfinite;
    to[p] = static_cast<T>(value);
  }
  return bad == 0;
}

}  // namespace

void set_blocks(Kernels& to) {
  to.columns = {columns_of_gaps<std::uint8_t>, columns_of_gaps<std::uint16_t>, columns_of_bits};
  to.f32.stored = {of_floats<float>, of_floats<float>, of_halves<float>, of_whole<float>, of_scaled<float>};
  to.f64.stored = {of_doubles, of_floats<double>, of_halves<double>, of_whole<double>, of_scaled<double>};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
