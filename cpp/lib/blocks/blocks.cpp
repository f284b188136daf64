#include "lacunar/blocks/blocks.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/observed/observed.hpp"

namespace lacunar {
namespace {

constexpr Offset kHead = 32, kWord = 8;
constexpr Offset kMost = std::numeric_limits<Offset>::max() / 64;  // of a count in a head: no sum of sections overflows
constexpr Offset kEntriesAScale = 8;
constexpr float kLargestHalf = 65504, kSteps = 127;
constexpr Offset kValueBytes[] = {8, 4, 2, 1, 1};

// Where the sections begin.
struct Layout {
  Offset lengths, escapes, scales, gaps, values, size;
};

Offset padded_to_word(Offset bytes) { return (bytes + kWord - 1) / kWord * kWord; }

Offset gap_section(const BlockHead& head, Offset n_cols) {
  return head.gap_bytes == 0 ? head.n_rows * ((n_cols + 7) / 8) : head.n_entries * head.gap_bytes;
}

Layout layout_of(const BlockHead& head, Offset n_cols) {
  Layout at{};
  at.lengths = kHead;
  at.escapes = at.lengths + padded_to_word(head.n_rows * head.length_bytes);
  at.scales = at.escapes + padded_to_word(head.n_escapes * 4);
  at.gaps = at.scales + (head.kind == ValueKind::scaled ? padded_to_word(n_cols * 4) : 0);
  at.values = at.gaps + padded_to_word(gap_section(head, n_cols));
  at.size = at.values + padded_to_word(head.n_entries * kValueBytes[static_cast<int>(head.kind)]);
  return at;
}

// To the nearest, ties to even; NaN and infinity do not come here.
std::uint16_t half_of(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  bits ^= sign;
  if (bits < (113u << 23)) {  // below 2^-14: the sum with 1/2 rounds where a subnormal half ends
    const float sum = std::bit_cast<float>(bits) + 0.5f;
    return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5f)) |
                                      sign >> 16);
  }
  bits += (static_cast<std::uint32_t>(15 - 127) << 23) + 0xfff + (bits >> 13 & 1);
  return static_cast<std::uint16_t>(bits >> 13 | sign >> 16);
}

float of_half(std::uint16_t half) {
  const float size = std::bit_cast<float>((half & 0x7fffu) << 13) * std::bit_cast<float>((127u + 112u) << 23);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | (half & 0x8000u) << 16);
}

template <class T>
bool is_float(T value) {
  return static_cast<T>(static_cast<float>(value)) == value;
}

template <class T>
bool fits_half(T value) {
  return std::abs(value) < static_cast<T>(kLargestHalf);
}

template <class T>
bool is_half(T value) {
  return fits_half(value) && is_float(value) && static_cast<T>(of_half(half_of(static_cast<float>(value)))) == value;
}

template <class T>
bool is_whole(T value) {  // -0 is not
  return std::abs(value) <= kSteps && value == std::trunc(value) && (value != 0 || !std::signbit(value));
}

template <class T>
bool all_of(const Rows<T>& rows, bool (*test)(T)) {
  return std::all_of(rows.values + rows.offsets[0], rows.values + rows.offsets[rows.n_rows], test);
}

template <class T>
ValueKind exact_kind(const Rows<T>& rows) {
  if (all_of(rows, is_whole<T>)) return ValueKind::whole;
  if (all_of(rows, is_half<T>)) return ValueKind::halves;
  return std::is_same_v<T, float> || all_of(rows, is_float<T>) ? ValueKind::floats : ValueKind::doubles;
}

template <class T>
bool scales_pay(const Rows<T>& rows) {
  const T largest = std::numeric_limits<float>::max();
  const auto fits = [largest](T value) { return std::abs(value) < largest; };
  return rows.n_cols <= rows.n_observed() / kEntriesAScale &&
         std::all_of(rows.values + rows.offsets[0], rows.values + rows.offsets[rows.n_rows], fits);
}

template <class T>
ValueKind kind_of(const Rows<T>& rows, Precision precision) {
  const ValueKind exact = exact_kind(rows);
  if (precision == Precision::lossless || exact >= ValueKind::halves) {
    if (precision != Precision::bytes || exact == ValueKind::whole) return exact;
  }
  if (precision == Precision::bytes && scales_pay(rows)) return ValueKind::scaled;
  return precision != Precision::lossless && all_of(rows, fits_half<T>) ? ValueKind::halves : exact;
}

struct GapCounts {
  Offset beyond_byte = 0, beyond_short = 0, longest = 0;
};

template <class T>
GapCounts count_gaps(const Rows<T>& rows) {
  GapCounts counts;
  for (Offset i = 0; i < rows.n_rows; ++i) {
    Index before = -1;
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; before = rows.indices[p++]) {
      counts.beyond_byte += rows.indices[p] - before > 0xff;
      counts.beyond_short += rows.indices[p] - before > 0xffff;
    }
    counts.longest = std::max(counts.longest, rows.offsets[i + 1] - rows.offsets[i]);
  }
  return counts;
}

template <class N>
std::uint8_t* put(std::uint8_t* to, N value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

void put_length(std::uint8_t* to, Offset length, int bytes) {
  if (bytes == 1) return void(put(to, static_cast<std::uint8_t>(length)));
  if (bytes == 2) return void(put(to, static_cast<std::uint16_t>(length)));
  put(to, static_cast<std::uint32_t>(length));
}

Offset length_at(const std::uint8_t* from, Offset row, int bytes) {
  std::uint32_t length = 0;
  std::memcpy(&length, from + row * bytes, static_cast<std::size_t>(bytes));  // little-endian
  return length;
}

template <class Gap, class T>
void write_gaps(const Rows<T>& rows, std::uint8_t* gaps, std::uint8_t* escapes) {
  for (Offset i = 0; i < rows.n_rows; ++i) {
    Index before = -1;
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; before = rows.indices[p++]) {
      const auto gap = static_cast<std::uint32_t>(rows.indices[p] - before);
      const bool fits = gap <= std::numeric_limits<Gap>::max();
      gaps = put(gaps, static_cast<Gap>(fits ? gap : 0));
      if (!fits) escapes = put(escapes, gap);
    }
  }
}

template <class T>
void write_bits(const Rows<T>& rows, std::uint8_t* bits) {
  const Offset width = (rows.n_cols + 7) / 8;
  for (Offset i = 0; i < rows.n_rows; ++i, bits += width)
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p)
      bits[rows.indices[p] / 8] = static_cast<std::uint8_t>(bits[rows.indices[p] / 8] | 1 << rows.indices[p] % 8);
}

template <class T>
std::vector<float> scales_of(const Rows<T>& rows) {
  std::vector<float> scale(static_cast<std::size_t>(rows.n_cols), 0.0f);
  for (Offset p = rows.offsets[0]; p < rows.offsets[rows.n_rows]; ++p) {
    float& largest = scale[static_cast<std::size_t>(rows.indices[p])];
    largest = std::max(largest, std::abs(static_cast<float>(rows.values[p])));
  }
  for (float& step : scale) step /= kSteps;
  return scale;
}

std::int8_t steps_of(float value, float scale) {
  if (!(scale > 0)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(value / scale), -kSteps, kSteps));
}

template <class T>
void add_loss(Loss& loss, T value, float stored) {
  loss.size += static_cast<double>(value) * static_cast<double>(value);
  loss.lost += (static_cast<double>(value) - stored) * (static_cast<double>(value) - stored);
}

template <class T>
Loss write_halves(const T* from, Offset count, std::uint8_t* to) {
  Loss loss;
  for (Offset p = 0; p < count; ++p) {
    const std::uint16_t half = half_of(static_cast<float>(from[p]));
    to = put(to, half);
    add_loss(loss, from[p], of_half(half));
  }
  return loss;
}

template <class T>
Loss write_scaled(const Rows<T>& rows, std::uint8_t* scales, std::uint8_t* to) {
  Loss loss;
  const std::vector<float> scale = scales_of(rows);
  std::memcpy(scales, scale.data(), scale.size() * sizeof(float));
  for (Offset p = rows.offsets[0]; p < rows.offsets[rows.n_rows]; ++p) {
    const float step = scale[static_cast<std::size_t>(rows.indices[p])];
    const std::int8_t steps = steps_of(static_cast<float>(rows.values[p]), step);
    to = put(to, steps);
    add_loss(loss, rows.values[p], static_cast<float>(steps) * step);
  }
  return loss;
}

template <class To, class T>
void write_as(const T* from, Offset count, std::uint8_t* to) {
  for (Offset p = 0; p < count; ++p) to = put(to, static_cast<To>(from[p]));
}

template <class T>
Loss write_values(const Rows<T>& rows, ValueKind kind, std::uint8_t* scales, std::uint8_t* to) {
  const T* from = rows.values + rows.offsets[0];
  switch (kind) {
    case ValueKind::doubles: return write_as<double>(from, rows.n_observed(), to), Loss{};
    case ValueKind::floats: return write_as<float>(from, rows.n_observed(), to), Loss{};
    case ValueKind::halves: return write_halves(from, rows.n_observed(), to);
    case ValueKind::whole: return write_as<std::int8_t>(from, rows.n_observed(), to), Loss{};
    case ValueKind::scaled: return write_scaled(rows, scales, to);
  }
  return {};
}

// Offsets of rows of these lengths; the first row that is too long, or -1. `offsets` end at the sum.
Offset add_lengths(const std::uint8_t* lengths, const BlockHead& head, Offset n_cols, Offset* offsets) {
  offsets[0] = 0;
  for (Offset i = 0; i < head.n_rows; ++i) {
    const Offset length = length_at(lengths, i, head.length_bytes);
    if (length > n_cols || length > head.n_entries - offsets[i]) return i;
    offsets[i + 1] = offsets[i] + length;
  }
  return -1;
}

template <class N>
const N* at_section(const std::uint8_t* from) {
  return reinterpret_cast<const N*>(from);
}

template <class T>
bool read_values(const std::uint8_t* from, const Layout& at, const BlockHead& head, const Index* columns, T* values) {
  const ValueKernels<T>& kernels = kernels_of<T>().stored;
  const std::uint8_t* stored = from + at.values;
  switch (head.kind) {
    case ValueKind::doubles: return kernels.same(at_section<T>(stored), head.n_entries, values);
    case ValueKind::floats: return kernels.floats(at_section<float>(stored), head.n_entries, values);
    case ValueKind::halves: return kernels.halves(at_section<std::uint16_t>(stored), head.n_entries, values);
    case ValueKind::whole: return kernels.whole(at_section<std::int8_t>(stored), head.n_entries, values);
    case ValueKind::scaled:
      return kernels.scaled(at_section<std::int8_t>(stored), columns, at_section<float>(from + at.scales),
                            head.n_entries, values);
  }
  return false;
}

template <class T>
Offset row_of_fault(const Offset* offsets, Offset n_rows, const T* values) {
  for (Offset i = 0; i < n_rows; ++i)
    for (Offset p = offsets[i]; p < offsets[i + 1]; ++p)
      if (!std::isfinite(values[p])) return i;
  return n_rows;
}

}  // namespace

Offset block_size(const BlockHead& head, Offset n_cols) {
  const Offset bits = head.gap_bytes == 0 ? (n_cols + 7) / 8 : 0;
  if (head.n_rows > kMost || head.n_entries > kMost || head.n_escapes > kMost) return -1;
  if (bits > 0 && head.n_rows > kMost / bits) return -1;
  return layout_of(head, n_cols).size;
}

template <class T>
BlockHead plan_block(const Rows<T>& rows, Precision precision) {
  assert(well_ordered(rows));
  const GapCounts gaps = count_gaps(rows);
  const auto lengths = static_cast<std::uint8_t>(gaps.longest <= 0xff ? 1 : gaps.longest <= 0xffff ? 2 : 4);
  const ValueKind kind = kind_of(rows, precision);
  const Offset n = rows.n_rows, entries = rows.n_observed();
  const BlockHead heads[] = {{n, entries, gaps.beyond_byte, lengths, 1, kind},
                             {n, entries, gaps.beyond_short, lengths, 2, kind},
                             {n, entries, 0, lengths, 0, kind}};
  // Bits take some three times as long to read as gaps, and count twice.
  const auto size = [&](const BlockHead& head) {
    const Offset bytes = block_size(head, rows.n_cols);
    if (bytes < 0) return std::numeric_limits<Offset>::max();
    return head.gap_bytes == 0 ? bytes + gap_section(head, rows.n_cols) : bytes;
  };
  return *std::min_element(std::begin(heads), std::end(heads),
                           [&](const BlockHead& a, const BlockHead& b) { return size(a) < size(b); });
}

template <class T>
Loss encode_block(const Rows<T>& rows, const BlockHead& head, std::uint8_t* to) {
  const Layout at = layout_of(head, rows.n_cols);
  std::memset(to, 0, static_cast<std::size_t>(at.size));
  put(to, head.n_rows), put(to + 8, head.n_entries), put(to + 16, head.n_escapes);
  to[24] = head.length_bytes, to[25] = head.gap_bytes, to[26] = static_cast<std::uint8_t>(head.kind);
  for (Offset i = 0; i < rows.n_rows; ++i)
    put_length(to + at.lengths + i * head.length_bytes, rows.offsets[i + 1] - rows.offsets[i], head.length_bytes);
  if (head.gap_bytes == 0) write_bits(rows, to + at.gaps);
  if (head.gap_bytes == 1) write_gaps<std::uint8_t>(rows, to + at.gaps, to + at.escapes);
  if (head.gap_bytes == 2) write_gaps<std::uint16_t>(rows, to + at.gaps, to + at.escapes);
  return write_values(rows, head.kind, to + at.scales, to + at.values);
}

template <class T>
const char* read_head(const std::uint8_t* from, Offset size, Offset n_cols, BlockHead& head) {
  if (size < kHead) return "it is shorter than its head";
  std::memcpy(&head.n_rows, from, 8), std::memcpy(&head.n_entries, from + 8, 8);
  std::memcpy(&head.n_escapes, from + 16, 8);
  head.length_bytes = from[24], head.gap_bytes = from[25];
  if (from[26] > static_cast<std::uint8_t>(ValueKind::scaled)) return "its values are of an unknown kind";
  head.kind = static_cast<ValueKind>(from[26]);
  if (head.kind == ValueKind::doubles && std::is_same_v<T, float>) return "it holds float64 in a table of float32";
  if (head.length_bytes != 1 && head.length_bytes != 2 && head.length_bytes != 4)
    return "its row lengths are of an unknown kind";
  if (head.gap_bytes > 2) return "its columns are of an unknown kind";
  if (std::any_of(from + 27, from + kHead, [](std::uint8_t byte) { return byte != 0; }))
    return "its head does not end in zeros";
  if (head.n_rows < 0 || head.n_entries < 0 || head.n_escapes < 0 || head.n_escapes > head.n_entries)
    return "its numbers of rows, entries and escapes do not fit each other";
  if (block_size(head, n_cols) != size) return "its sections are not as long as its head says";
  return nullptr;
}

template <class T>
BlockFault decode_block(const std::uint8_t* from, const BlockHead& head, Offset n_cols, Offset* offsets, Index* columns,
                        T* values) {
  const Layout at = layout_of(head, n_cols);
  if (const Offset row = add_lengths(from + at.lengths, head, n_cols, offsets); row >= 0)
    return {"has more entries than columns, or than its block", row};
  if (offsets[head.n_rows] != head.n_entries) return {"ends before the entries of its block do", head.n_rows - 1};
  const StoredRows rows{offsets,        head.n_rows, n_cols, at_section<std::uint32_t>(from + at.escapes),
                        head.n_escapes, columns};
  const ColumnKernels& kernels_now = kernels().columns;
  const Offset bad = head.gap_bytes == 0   ? kernels_now.bits(from + at.gaps, rows)
                     : head.gap_bytes == 1 ? kernels_now.bytes(from + at.gaps, rows)
                                           : kernels_now.shorts(at_section<std::uint16_t>(from + at.gaps), rows);
  if (bad == head.n_rows) return {"is the last and leaves escapes over", bad - 1};
  if (bad >= 0) return {"has columns that are not ascending numbers below that of columns", bad};
  if (!read_values(from, at, head, columns, values))
    return {"has a value that is not finite", row_of_fault(offsets, head.n_rows, values)};
  return {};
}

template BlockHead plan_block(const Rows<float>&, Precision);
template BlockHead plan_block(const Rows<double>&, Precision);
template Loss encode_block(const Rows<float>&, const BlockHead&, std::uint8_t*);
template Loss encode_block(const Rows<double>&, const BlockHead&, std::uint8_t*);
template const char* read_head<float>(const std::uint8_t*, Offset, Offset, BlockHead&);
template const char* read_head<double>(const std::uint8_t*, Offset, Offset, BlockHead&);
template BlockFault decode_block(const std::uint8_t*, const BlockHead&, Offset, Offset*, Index*, float*);
template BlockFault decode_block(const std::uint8_t*, const BlockHead&, Offset, Offset*, Index*, double*);

}  // namespace lacunar
