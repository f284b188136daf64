// The inner loops, compiled once per instruction set, and the table of those that this process runs. A new kernel is a
// field here and a line in the `set_...` of its file in cpp/kernels.
#pragma once

#include <cstdint>
#include <string>

#include "lacunar/types.hpp"

// Vector extensions are GCC's and Clang's; -DLACUNAR_PLAIN builds the loops that other compilers (MSVC) get, for
// testing.
#if defined(__GNUC__) && !defined(LACUNAR_PLAIN)
#define LACUNAR_VECTORS
#endif

namespace lacunar {

// One output of a pass over pairs: k = (on_sum s + on_count n + constant) table[n], with s the sum and n the number of
// common observed columns. Table and coefficients are already in the output's type.
template <class T>
struct Form {
  T on_sum, on_count, constant;
  const T* table;  // (largest n + 1)
};

// Sum and count of one pair of rows, side by side: one cache line serves both.
template <class T>
struct Pair {
  T s;
  std::int32_t n;
};

// The columns of a table: rows and values of column k are [offsets[k], offsets[k + 1]).
template <class T>
struct ByColumn {
  const Offset* offsets;
  const Index* row;
  const T* value;
};

// All paths add the products of a pair column by column, and each product by the same instruction: a kernel value has
// the same bits on every path.
template <class T>
struct GramKernels {
  int tile_rows, tile_cols;  // register tile of the dense path
  int lanes;                 // columns of one block of the SpMM path

  // s, n (rows, leading) over all d columns of panels a (rows / tile_rows)[d][tile_rows] and b (cols /
  // tile_cols)[d][tile_cols]; masks as 32-bit words [word][tile_*]. rows and cols are multiples of the tile.
  void (*dense_block)(const T* a, const T* b, const std::uint32_t* a_bits, const std::uint32_t* b_bits, Offset d,
                      Offset words, Offset rows, Offset cols, T* s, std::int32_t* n, Offset leading);

  // s, n (last - first, lanes) of sparse rows against a block of columns: values[d][lanes] zero-filled, seen[d][lanes]
  // 0/1.
  void (*sparse_rows)(const Rows<T>& x, Offset first, Offset last, const T* values, const std::uint8_t* seen, T* s,
                      std::int32_t* n);

  // Adds row i of x to its pairs (n_y) with the rows of y that share a column; touched gets those whose count was 0,
  // and is one place longer than pairs. Returns their number.
  Offset (*meet)(const Rows<T>& x, Offset i, const ByColumn<T>& y, Pair<T>* pairs, Index* touched);

  // out[touched[t]] = form * row_scale * col_scale of pair touched[t]; col_scale may be null.
  void (*finish_pairs)(const Pair<T>* pairs, const Index* touched, Offset count, const Form<T>& form, T row_scale,
                       const T* col_scale, T* out);

  // out[j] = form(s[j], n[j]) * row_scale * col_scale[j]; col_scale may be null.
  void (*finish)(const T* s, const std::int32_t* n, Offset count, const Form<T>& form, T row_scale, const T* col_scale,
                 T* out);

  // to (cols, rows) = transpose of from (rows, cols), whose rows lie `leading` apart.
  void (*transpose)(const T* from, Offset rows, Offset cols, Offset leading, T* to);

  // Copies past the caches where the instruction set can.
  void (*stream)(const T* from, T* to, Offset count);
};

// gradient -= c row, and gains = twice the gain g s - s^2 / 2 of the step s = clamp(g, low, high), g = scale gradient.
using DualSweep = void (*)(const float* row, double c, double* gradient, const float* scale, const float* low,
                           const float* high, float* gains, Offset count);

// Of rows side by side, each with a score and a share of every class, class by class `stride` apart: score += change
// row, and gains = what the row's own step would gain at most: psi min(psi / diagonal, upper) of the violation psi, the
// highest score less the lowest of a class with room (Crammer & Singer 2002, Section 6). At most kSweep rows.
struct ClassRows {
  double* score;      // (k, stride)
  const float* room;  // (k, stride): 0 where the share is at its cap
  const double *upper, *diagonal;
};
constexpr Offset kSweep = 256;
using ClassSweep = void (*)(const float* row, const double* change, Offset classes, Offset stride,
                            const ClassRows& rows, double* gains, Offset count);

// Dense rows x (at most 64, width) with coefficients c: bit i of met[r] says whether row i meets row r of a table, and
// bit i of `wanted` whether it counts.
template <class T>
struct WaitingRows {
  const T *x, *c;
  const std::uint64_t* met;  // (table_rows)
  Offset table_rows;
  std::uint64_t wanted;
};

// Rows of a weight table against a dense row x (width, a multiple of 16), which falls into parts. A product is the sum
// of those of its parts, one after the other.
template <class T>
struct PrimalKernels {
  Offset (*parts)(Offset width);
  Offset (*part_start)(Offset width, Offset part);
  double (*dot_rows)(const T* table, Offset stride, const Index* ids, int count, const T* x, Offset width);
  // From here on, `table` begins with part `begin`. Products of the parts [begin, end): sums (end - begin).
  void (*dot_some)(const T* table, Offset stride, const Index* ids, int count, const T* x, Offset width, Offset begin,
                   Offset end, double* sums);
  // The parts [begin, end) of the rows += c x.
  void (*add_rows)(T* table, Offset stride, const Index* ids, int count, const T* x, Offset width, Offset begin,
                   Offset end, T c);
  // The same of all waiting rows, one after the other, with the same bits: a row of the table is read and written once.
  void (*add_waiting)(T* table, Offset stride, const WaitingRows<T>& rows, Offset width, Offset begin, Offset end);
};

// A group of rows side by side, "lanes": values[place][lanes] zero-filled and seen[place][lanes] 0/1, a place being a
// column or, with slot (n_cols), the slot of a column, 0 where no lane has it.
template <class T>
struct LaneGroup {
  const T* values;
  const std::uint8_t* seen;
  const Index* slot;  // or null
  const T* scale;     // (lanes); not read unless the support rows have one, too
};

// k of a pair from its sum and count, times the scales of both rows if there are any, and of degree p > 1 then
// ((k + coef0) / (1 + coef0))^p.
template <class T>
struct RowKernel {
  Form<T> form;
  int table_size;  // entries of form.table: one more than the longest row
  int degree;
  T coef0, shrink;  // shrink = 1 / (1 + coef0)
};

// sums (outputs, lanes) += coef_j k(x_j, lane) for the support rows [first, last), one after the other: every lane by
// itself, so that its bits depend on neither the group nor the number of lanes. coef (rows, outputs), scale (rows) or
// null.
template <class T>
struct Expansion {
  int lanes;
  void (*run)(const Rows<T>& support, const T* scale, const double* coef, Offset first, Offset last, Offset outputs,
              const LaneGroup<T>& group, const RowKernel<T>& kernel, double* sums);
};

template <class T>
struct OnlineKernels {
  Expansion<T> narrow, wide;
};

// out (n, width) = a (n, depth) b. Every row of a by itself: its bits depend neither on n nor on its place.
template <class T>
struct ProductKernels {
  int panel;  // columns of a panel of b
  // b as panels [panel][depth][columns], padded with zeros.
  void (*panels)(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out);
  // b by columns (width, depth), for few of them.
  void (*dots)(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out);

  // out += X^T X v over the rows [first, last) of X, missing values zero; v and out (n_cols, lanes) for 1, 2, 4 or 8
  // lanes.
  void (*gram_rows)(const Rows<T>& x, Offset first, Offset last, const double* v, int lanes, double* out);
};

// How the entries of columns are standardised: less the center, over the scale, then clipped to [-bound, bound].
struct Columns {
  const double *center, *scale;
  double bound;
};

// A row of a dense table, or a piece of a column, with NaN where missing.
template <class T>
struct DenseKernels {
  // Cells of a row that are not NaN, in columns whose scale is not, where there are scales; `infinite` is set where a
  // cell is so.
  Offset (*count)(const T* row, const double* scale, Offset n_cols, bool* infinite);
  // counts[i] += 1 where cells[i] is not NaN; false where one is infinite.
  bool (*count_column)(const T* cells, Offset n, Offset* counts);
  // out[j] = (row[j] - center[j]) / scale[j], or row[j] where scale is null; false where one is infinite.
  bool (*read_float)(const T* row, const double* center, const double* scale, Offset n_cols, float* out);
  bool (*read_double)(const T* row, const double* center, const double* scale, Offset n_cols, double* out);
  // The first n_entries cells of a row that are not NaN, and their columns; how many there were.
  Offset (*keep)(const T* row, Offset n_cols, Offset n_entries, Index* indices, T* values);
  // Entries of these columns standardised; false where one is not finite before it is clipped.
  bool (*standardise_float)(const T* values, const Index* columns, const Columns& by, Offset count, float* out);
  bool (*standardise_double)(const T* values, const Index* columns, const Columns& by, Offset count, double* out);
};

// Of eight models side by side, eight numbers each: discounted rows, unit of what counts the rows that saw a column,
// and a^T R^-1 a of the last row's code.
struct EightLines {
  const double *rows, *unit, *tau;
};

// Products of matrices of some tens of columns: rows `leading` = a multiple of eight apart, padded with zeros.
struct SmallKernels {
  void (*gram)(const double* rows, int m, int leading, double* out);                    // rows^T rows
  void (*triangular_gram)(const double* rows, int m, int leading, double* out);         // of lower triangular rows
  void (*multiply)(const double* a, const double* b, int m, int leading, double* out);  // a b, a (m, leading), b square
  void (*combine)(const double* rows, const double* weight, int m, int leading, double* out);  // rows^T weight
  void (*project)(const double* rows, const double* x, int m, int leading, double* out);       // rows x
  // Of lines that are padded to a multiple of eight: the sum of `count` values (padded), each cut at `most`, and how
  // many are cut; error (m) = x - rows code and (error / scale)^2, 0 beyond m; and out = x, cut at +-most scale.
  double (*clipped_sum)(const double* x, int count, double most, double* n_cut);
  void (*errors_of_rows)(const double* rows, const double* code, const double* x, const double* scale, int m,
                         int leading, double* error, double* squares);
  void (*clip)(const double* x, const double* scale, int count, double most, double* out);

  // Of rows of a table, `stride` apart, at `places` (count): out (width) = sum_p scale_p row_p, and row_p += scale_p x.
  // scale null for ones, width a multiple of eight.
  void (*sum_rows)(const double* table, Offset stride, const Index* places, const double* scale, Offset count,
                   int width, double* out);
  void (*add_to_rows)(double* table, Offset stride, const Index* places, const double* scale, Offset count, int width,
                      const double* x);

  // Eight models side by side: error (8) = x - code v at an entry whose rows of the bases are v (d, 8).
  void (*errors_of_eight)(const double* v, int d, const double* code, double x, double* error);
  // seen (8) counts the entry, and v += gain error s / (1 + s tau) with gain (d, 8) and s = rows / (seen unit).
  void (*learn_by_eight)(double* v, double* seen, int d, const double* code, double x, const double* gain,
                         const EightLines& of);
  // inverse (d, d, 8), of R, becomes that of R / grow + code code^T; gain (d, 8) = grow inverse code before, tau (8) =
  // code gain.
  void (*advance_by_eight)(double* inverse, int d, const double* code, const double* grow, double* gain, double* tau);

  // out = matrix x for a symmetric matrix (d, d) kept as rows i of 8 (i / 8 + 1) doubles with full diagonal blocks; x
  // and out are padded with zeros to a multiple of eight. Every stored block is read once.
  void (*symmetric)(const double* matrix, int d, const double* x, double* out);

  // matrix, kept as above, becomes grow matrix - u u^T, where v = grow matrix code, beta = 1 + code v,
  // u = v / sqrt(beta); gain = v / beta, the new matrix times the code.
  void (*rls_update)(double* matrix, int d, const double* code, double grow, double* gain);

  // Such blocks from a packed lower triangle, and back.
  void (*unpack)(const float* packed, int d, double* blocks);
  void (*pack)(const double* blocks, int d, float* packed);
};

// Factors of symmetric matrices (leading, leading), leading = d up to a multiple of eight, padded with zeros: A = U^T
// U, U by rows with 1 / U(i, i) on its diagonal.
struct FactorKernels {
  // Upper triangle of A to U in place; false, half done, when a pivot is not above `smallest`. d^3 / 3.
  bool (*factorise)(double* matrix, int d, int leading, double smallest);
  void (*solve)(const double* factor, int d, int leading, double* x);           // x <- A^-1 x, x (leading). 2 d^2
  void (*invert_root)(const double* factor, int d, int leading, double* root);  // root = U^-T, lower. d^3 / 3
};

// The passes of a Lanczos step over vectors padded with zeros to a multiple of eight.
struct MegKernels {
  // to_rows += matrix x_cols and to_cols += matrix^T x_rows; matrix (rows, width), rows `leading` apart, all multiples
  // of eight.
  void (*rectangle)(const double* matrix, Offset leading, Offset rows, Offset width, const double* x_rows,
                    const double* x_cols, double* to_rows, double* to_cols);
  double (*dot)(const double* x, const double* y, Offset length);
  // u -= alpha q + beta before.
  void (*recur)(double* u, double alpha, const double* q, double beta, const double* before, Offset length);
  // matrix += factor x x^T for a symmetric matrix kept as for `symmetric`; length a multiple of eight.
  void (*grow_symmetric)(double* matrix, Offset length, double factor, const double* x);
};

// counts[j] += common bits of `one` (words) and row j of `others` (n, words).
using CountCommon = void (*)(const std::uint64_t* one, const std::uint64_t* others, Offset words, Offset n,
                             Offset* counts);

// Rows of a stored block whose columns are to be made: row i has the places [offsets[i], offsets[i + 1]) of `columns`.
struct StoredRows {
  const Offset* offsets;  // (n_rows + 1), which rise from 0
  Offset n_rows, n_cols;
  const std::uint32_t* escapes;  // gaps that do not fit, in the order of the entries
  Offset n_escapes;
  Index* columns;
};

// Each returns the first row that is not sound, n_rows where escapes are left over, or -1. A gap is a column minus the
// one before it in its row, -1 before the first; 0 stands for the next escape. Nothing of what is read is trusted.
struct ColumnKernels {
  Offset (*bytes)(const std::uint8_t* gaps, const StoredRows& rows);
  Offset (*shorts)(const std::uint16_t* gaps, const StoredRows& rows);
  Offset (*bits)(const std::uint8_t* bits, const StoredRows& rows);  // (n_rows, ceil(n_cols / 8)), lowest bit first
};

// Stored values as numbers; false where one is not finite.
template <class T>
struct ValueKernels {
  bool (*same)(const T* from, Offset count, T* to);
  bool (*floats)(const float* from, Offset count, T* to);
  bool (*halves)(const std::uint16_t* from, Offset count, T* to);
  bool (*whole)(const std::int8_t* from, Offset count, T* to);
  bool (*scaled)(const std::int8_t* from, const Index* columns, const float* scale, Offset count, T* to);
};

template <class T>
struct TypedKernels {
  ValueKernels<T> stored;
  GramKernels<T> gram;
  PrimalKernels<T> primal;
  OnlineKernels<T> online;
  ProductKernels<T> product;
  DenseKernels<T> dense;
};

struct Kernels {
  TypedKernels<float> f32;
  TypedKernels<double> f64;
  SmallKernels small;
  FactorKernels factor;
  MegKernels meg;
  ColumnKernels columns;
  DualSweep dual_sweep;
  ClassSweep class_sweep;
  CountCommon count_common;
};

// Those of the best instruction set of this machine, or of the one that the environment variable LACUNAR_ISA names.
const Kernels& kernels();

template <class T>
const TypedKernels<T>& kernels_of();
template <>
inline const TypedKernels<float>& kernels_of() {
  return kernels().f32;
}
template <>
inline const TypedKernels<double>& kernels_of() {
  return kernels().f64;
}

// What cpuid says by leaf and register, and the registers that the system saves; zero where there is nothing to ask.
struct Processor {
  std::uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, extended_ecx = 0;
  std::uint64_t xcr0 = 0;
};

const char* isa_name();                          // in use: "base", "v3", "v4" or "v4+vpopcntdq"
std::string isa_found();                         // the best this processor can run, and what the next one would need
std::string isa_of(const Processor& processor);  // the same of another
const char* isa_complaint();                     // null, or why LACUNAR_ISA could not be honoured

}  // namespace lacunar
