// Blocks of rows as they lie in a file: columns as gaps or bits, values in as few bytes as they need or may take.
//
// A block is a head of 32 bytes and up to five sections, each padded to a multiple of eight bytes, little-endian:
//   rows, entries, escapes (64 bits each); bytes of a row length (1, 2, 4), bytes of a gap (1, 2, or 0 for bits), kind
//   of the values, five zeros | lengths of the rows | escapes (32 bits each) | scales (floats, a column each) | gaps or
//   bits | values
// ColumnKernels says what gaps, escapes and bits are.
#pragma once

#include <cstdint>

#include "lacunar/types.hpp"

namespace lacunar {

enum class ValueKind : std::uint8_t { doubles, floats, halves, whole, scaled };  // whole: -127 to 127, a byte each

// What may be lost: nothing; what float16 does not hold; what 127 steps up to a column's largest value do not hold.
enum class Precision { lossless, halves, bytes };

struct BlockHead {
  Offset n_rows, n_entries, n_escapes;
  std::uint8_t length_bytes, gap_bytes;
  ValueKind kind;
};

// The shortest block of these rows, but bits only where they take less than half of what gaps do. Values that float16
// cannot hold, beyond 65504, stay exact under `halves`; columns so many that their scales would take more than half a
// byte an entry are stored as halves under `bytes`.
template <class T>
BlockHead plan_block(const Rows<T>& rows, Precision precision);

// Bytes of such a block; negative where 63 bits do not hold them.
Offset block_size(const BlockHead& head, Offset n_cols);

// Squares of the values, and of what was lost of them, summed over a block.
struct Loss {
  double size = 0, lost = 0;
};

// Writes block_size(head, rows.n_cols) bytes; the rows are those of which `plan_block` made the head. The loss is
// looked at only where something may be lost. O(n_observed).
template <class T>
Loss encode_block(const Rows<T>& rows, const BlockHead& head, std::uint8_t* to);

// Null, or why these bytes are no head of a block of `size` bytes and of values of T.
template <class T>
const char* read_head(const std::uint8_t* from, Offset size, Offset n_cols, BlockHead& head);

struct BlockFault {
  const char* what = nullptr;  // null: none
  Offset row = -1;
};

// The rows of a block whose head `read_head` accepted: offsets (n_rows + 1), columns and values (n_entries). Everything
// that `Rows` promises is checked on the way. `from` is aligned to eight bytes. O(n_entries + n_rows).
template <class T>
BlockFault decode_block(const std::uint8_t* from, const BlockHead& head, Offset n_cols, Offset* offsets, Index* columns,
                        T* values);

}  // namespace lacunar
