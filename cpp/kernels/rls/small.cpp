// Compiled once per instruction set into its own namespace: products of matrices of some tens of columns, and the
// rank-one update of a symmetric matrix kept as blocks of eight columns on and below the diagonal. Rows of matrices are
// a multiple of eight apart and padded with zeros. Raw pointers, no std:: templates; everything but the table is
// internal.
#include <math.h>  // the sqrt of C, which MSVC lacks as a builtin

#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "eight.inc"

// out (leading, leading) = rows^T rows for rows (m, leading); row i of `triangular` rows ends at its place i.
template <bool triangular>
void gram(const double* rows, int m, int leading, double* out) {
  for (int b = 0; b < leading; b += 8)
    for (int c = 0; c <= b; c += 8) {
      for (int k = 0; k < 8; k += kWidth) {  // a part at a time: eight sums of one are what the registers hold
        Part sum[8] = {};
        for (int i = triangular ? b : 0; i < m; ++i) {
          const double* row = rows + i * static_cast<Offset>(leading);
          const Part x = *reinterpret_cast<const Part*>(row + c + k);
#pragma GCC unroll 8
          for (int r = 0; r < 8; ++r) sum[r] += row[b + r] * x;
        }
        for (int r = 0; r < 8; ++r) *reinterpret_cast<Part*>(out + (b + r) * leading + c + k) = sum[r];
      }
      for (int r = 0; r < 8 && c < b; ++r)
        for (int k = 0; k < 8; ++k) out[(c + k) * leading + b + r] = out[(b + r) * leading + c + k];
    }
}

// `count` rows by `wide` blocks of out = a b, in registers over all of b's rows.
template <int count, int wide>
inline void multiply_tile(const double* a, const double* b, int leading, double* out) {
  Eight sum[count][wide] = {};
  for (int k = 0; k < leading; ++k) {
    Eight x[wide];
    for (int w = 0; w < wide; ++w) x[w] = load(b + k * leading + 8 * w);
#pragma GCC unroll 4
    for (int r = 0; r < count; ++r)
      for (int w = 0; w < wide; ++w) add(sum[r][w], a[r * leading + k], x[w]);
  }
  for (int r = 0; r < count; ++r)
    for (int w = 0; w < wide; ++w) store(sum[r][w], out + r * leading + 8 * w);
}

template <int count>
inline void multiply_rows(const double* a, const double* b, int leading, double* out) {
  constexpr int wide = kParts == 1 ? 3 : 1;  // what the registers hold
  int j = 0;
  for (; j + 8 * wide <= leading; j += 8 * wide) multiply_tile<count, wide>(a, b + j, leading, out + j);
  for (; j < leading; j += 8) multiply_tile<count, 1>(a, b + j, leading, out + j);
}

// out (m, leading) = a (m, leading) times b (leading, leading).
void multiply(const double* a, const double* b, int m, int leading, double* out) {
  const Offset four = 4 * static_cast<Offset>(leading);
  for (; m >= 4; m -= 4, a += four, out += four) multiply_rows<4>(a, b, leading, out);
  if (m == 3) multiply_rows<3>(a, b, leading, out);
  if (m == 2) multiply_rows<2>(a, b, leading, out);
  if (m == 1) multiply_rows<1>(a, b, leading, out);
}

// out (leading) = sum_i weight_i rows_i; four sums at a time, so that none waits for the one before.
void combine(const double* rows, const double* weight, int m, int leading, double* out) {
  for (int k = 0; k < leading; k += 8) {
    const double* row = rows + k;
    Eight sum[4] = {};
    int i = 0;
    for (; i + 4 <= m; i += 4, row += 4 * static_cast<Offset>(leading))
      for (int r = 0; r < 4; ++r) add(sum[r], weight[i + r], load(row + r * leading));
    for (; i < m; ++i, row += leading) add(sum[0], weight[i], load(row));
    for (int r = 1; r < 4; ++r) add(sum[0], 1.0, sum[r]);
    store(sum[0], out + k);
  }
}

// out (8) = eight rows times x.
inline void project_eight(const double* row, const double* x, int leading, double* out) {
  Eight sum[8] = {};
  for (int k = 0; k < leading; k += 8) {
    const Eight by = load(x + k);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) add(sum[r], load(row + r * leading + k), by);
  }
  totals(sum, out);
}

// out (m) = rows x, eight at a time.
void project(const double* rows, const double* x, int m, int leading, double* out) {
  int i = 0;
  for (; i + 8 <= m; i += 8) project_eight(rows + i * static_cast<Offset>(leading), x, leading, out + i);
  for (; i < m; ++i) {
    Eight sum = {};
    for (int k = 0; k < leading; k += 8) add(sum, load(rows + i * static_cast<Offset>(leading) + k), load(x + k));
    out[i] = total(sum);
  }
}

// error = x - rows code and (error / scale)^2, of lines that are padded: 0 beyond the m rows, whatever is read there.
void errors_of_rows(const double* rows, const double* code, const double* x, const double* scale, int m, int leading,
                    double* error, double* squares) {
  for (int i = 0; i < m; i += 8) {
    double fitted[8];
    project_eight(rows + i * static_cast<Offset>(leading), code, leading, fitted);
    for (int k = 0; k < 8; k += kWidth) {
      const auto at = [](const double* line) { return *reinterpret_cast<const Part*>(line); };
      const Part difference = at(x + i + k) - at(fitted + k), ratio = difference / at(scale + i + k);
      *reinterpret_cast<Part*>(error + i + k) = difference;
      *reinterpret_cast<Part*>(squares + i + k) = ratio * ratio;
    }
  }
  for (int i = m; i % 8 != 0; ++i) error[i] = squares[i] = 0;
}

// Of the eight lanes, in three steps instead of eight that wait for one another.
inline double total_of_pairs(const Eight& x) {
  double lanes[8];
  store(x, lanes);
  for (int half = 4; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

// Sum of values, each cut at `most`, and the number of those that are cut; two sums do not wait for one another.
double clipped_sum(const double* x, int count, double most, double* n_cut) {
  const Part limit = most - Part{}, one = 1.0 - Part{};
  Eight sum[2] = {}, cut[2] = {};
  const auto add_clipped = [limit, one](const Eight& of, Eight& to, Eight& cuts) {
    for (int s = 0; s < kSteps; ++s) {
      to.part[s] += limit < of.part[s] ? limit : of.part[s];
      cuts.part[s] += limit < of.part[s] ? one : Part{};
    }
  };
  int i = 0;
  for (; i + 16 <= count; i += 16)
    for (int r = 0; r < 2; ++r) add_clipped(load(x + i + 8 * r), sum[r], cut[r]);
  if (i < count) add_clipped(load(x + i), sum[0], cut[0]);
  add(sum[0], 1.0, sum[1]);
  add(cut[0], 1.0, cut[1]);
  *n_cut = total_of_pairs(cut[0]);
  return total_of_pairs(sum[0]);
}

// out = x, cut at +-most scale, of padded lines.
void clip(const double* x, const double* scale, int count, double most, double* out) {
  for (int i = 0; i < count; i += kWidth) {
    Part of = *reinterpret_cast<const Part*>(x + i);
    const Part high = most * *reinterpret_cast<const Part*>(scale + i), low = -high;
    of = of < low ? low : of;
    *reinterpret_cast<Part*>(out + i) = high < of ? high : of;
  }
}

inline Eight times(const Eight& x, const Eight& y) {
  Eight product;
  for (int s = 0; s < kSteps; ++s) product.part[s] = x.part[s] * y.part[s];
  return product;
}

inline Eight over(const Eight& x, const Eight& y) {
  Eight quotient;
  for (int s = 0; s < kSteps; ++s) quotient.part[s] = x.part[s] / y.part[s];
  return quotient;
}

inline Eight every(double x) {
  Eight all;
  for (int s = 0; s < kSteps; ++s) all.part[s] = x - Part{};
  return all;
}

inline Eight errors(const double* v, int d, const double* code, double x) {
  Eight error = every(x);
  for (int k = 0; k < d; ++k) add(error, -code[k], load(v + 8 * k));
  return error;
}

void errors_of_eight(const double* v, int d, const double* code, double x, double* error) {
  store(errors(v, d, code, x), error);
}

void learn_by_eight(double* v, double* seen, int d, const double* code, double x, const double* gain,
                    const EightLines& of) {
  const Eight rows = load(of.rows);
  Eight count = load(seen);
  add(count, 1.0, over(every(1.0), load(of.unit)));
  store(count, seen);
  Eight divisor = times(count, load(of.unit));
  add(divisor, rows, load(of.tau));
  const Eight step = times(errors(v, d, code, x), over(rows, divisor));
  for (int k = 0; k < d; ++k) {
    Eight to = load(v + 8 * k);
    add(to, step, load(gain + 8 * k));
    store(to, v + 8 * k);
  }
}

// What is subtracted at (i, k) and at (k, i) is one product, so that the inverses stay symmetric to the last bit.
void advance_by_eight(double* inverse, int d, const double* code, const double* grow, double* gain, double* tau) {
  const Eight by = load(grow);
  Eight sum_of_tau = {};
  for (int i = 0; i < d; ++i) {
    Eight sum = {};
    for (int k = 0; k < d; ++k) add(sum, code[k], load(inverse + 8 * (i * d + k)));
    sum = times(by, sum);
    store(sum, gain + 8 * i);
    add(sum_of_tau, code[i], sum);
  }
  store(sum_of_tau, tau);
  add(sum_of_tau, 1.0, every(1.0));
  const Eight factor = over(every(-1.0), sum_of_tau);
  for (int i = 0; i < d; ++i)
    for (int k = 0; k < d; ++k, inverse += 8) {
      Eight to = times(by, load(inverse));
      add(to, times(load(gain + 8 * i), load(gain + 8 * k)), factor);
      store(to, inverse);
    }
}

// sum_rows and add_to_rows, `wide` blocks of columns.
template <bool scaled, int wide>
inline void sum_blocks(const double* table, Offset stride, const Index* places, const double* scale, Offset count,
                       double* out) {
  Eight sum[wide] = {};
  for (Offset p = 0; p < count; ++p) {
    const double* row = table + places[p] * stride;
#pragma GCC unroll 4
    for (int w = 0; w < wide; ++w) add(sum[w], scaled ? scale[p] : 1.0, load(row + 8 * w));
  }
  for (int w = 0; w < wide; ++w) store(sum[w], out + 8 * w);
}

template <bool scaled, int wide>
inline void add_blocks(double* table, Offset stride, const Index* places, const double* scale, Offset count,
                       const double* x) {
  Eight own[wide];
  for (int w = 0; w < wide; ++w) own[w] = load(x + 8 * w);
  for (Offset p = 0; p < count; ++p) {
    double* row = table + places[p] * stride;
#pragma GCC unroll 4
    for (int w = 0; w < wide; ++w) {
      Eight sum = load(row + 8 * w);
      add(sum, scaled ? scale[p] : 1.0, own[w]);
      store(sum, row + 8 * w);
    }
  }
}

template <bool scaled>
void sum_scaled(const double* table, Offset stride, const Index* places, const double* scale, Offset count, int width,
                double* out) {
  int c = 0;
  for (; c + 24 <= width; c += 24) sum_blocks<scaled, 3>(table + c, stride, places, scale, count, out + c);
  if (width - c == 16) sum_blocks<scaled, 2>(table + c, stride, places, scale, count, out + c);
  if (width - c == 8) sum_blocks<scaled, 1>(table + c, stride, places, scale, count, out + c);
}

template <bool scaled>
void add_scaled(double* table, Offset stride, const Index* places, const double* scale, Offset count, int width,
                const double* x) {
  int c = 0;
  for (; c + 24 <= width; c += 24) add_blocks<scaled, 3>(table + c, stride, places, scale, count, x + c);
  if (width - c == 16) add_blocks<scaled, 2>(table + c, stride, places, scale, count, x + c);
  if (width - c == 8) add_blocks<scaled, 1>(table + c, stride, places, scale, count, x + c);
}

void sum_rows(const double* table, Offset stride, const Index* places, const double* scale, Offset count, int width,
              double* out) {
  (scale ? sum_scaled<true> : sum_scaled<false>)(table, stride, places, scale, count, width, out);
}

void add_to_rows(double* table, Offset stride, const Index* places, const double* scale, Offset count, int width,
                 const double* x) {
  (scale ? add_scaled<true> : add_scaled<false>)(table, stride, places, scale, count, width, x);
}

// One block row of `count` rows: its blocks left of the diagonal times the code and transposed, then the diagonal
// block.
template <int count>
inline void block_row(const double* matrix, int first, const double* code, double* gain) {
  const int width = first + 8;
  Eight dot[8] = {}, diagonal = {};
  for (int k = 0; k < first; k += 8) {
    const Eight with = load(code + k);
    Eight transposed = load(gain + k);
#pragma GCC unroll 8
    for (int r = 0; r < count; ++r) {
      const Eight x = load(matrix + r * width + k);
      add(dot[r], x, with);
      add(transposed, code[first + r], x);
    }
    store(transposed, gain + k);
  }
#pragma GCC unroll 8
  for (int r = 0; r < count; ++r) add(diagonal, code[first + r], load(matrix + r * width + first));
  if (first > 0) {
    double across[8];
    totals(dot, across);
    add(diagonal, 1.0, load(across));
  }
  store(diagonal, gain + first);
}

// gain = matrix code; every stored block is read once.
void apply_blocks(const double* matrix, int d, const double* code, double* gain) {
  for (int first = 0; first < d; matrix += 8 * (first + 8), first += 8) switch (d - first) {
      case 1: return block_row<1>(matrix, first, code, gain);
      case 2: return block_row<2>(matrix, first, code, gain);
      case 3: return block_row<3>(matrix, first, code, gain);
      case 4: return block_row<4>(matrix, first, code, gain);
      case 5: return block_row<5>(matrix, first, code, gain);
      case 6: return block_row<6>(matrix, first, code, gain);
      case 7: return block_row<7>(matrix, first, code, gain);
      default: block_row<8>(matrix, first, code, gain);
    }
}

// One block row of matrix <- grow matrix - u u^T: eight entries of u stay in registers down the rows.
template <bool growing>
inline void lower_row(double* matrix, int first, int count, double grow, const double* u) {
  const int width = first + 8;
  for (int k = 0; k < width; k += 8) {
    const Eight across = load(u + k);
    for (int r = 0; r < count; ++r) {
      Eight x = load(matrix + r * width + k);
      if (growing)
        for (int s = 0; s < kSteps; ++s) x.part[s] *= grow;
      add(x, -u[first + r], across);
      store(x, matrix + r * width + k);
    }
  }
}

// matrix (rows i of 8 (i / 8 + 1) doubles, diagonal blocks full) becomes grow matrix - u u^T with v = grow matrix code,
// beta = 1 + code v, u = v / sqrt(beta); gain = v / beta, which is the new matrix times the code. code and gain are
// padded with zeros to a multiple of eight. u u^T is symmetric to the last bit: anything less grows as grow^t.
void rls_update(double* matrix, int d, const double* code, double grow, double* gain) {
  apply_blocks(matrix, d, code, gain);
  double beta = 1;
  for (int k = 0; k < d; ++k) {
    gain[k] *= grow;
    beta += code[k] * gain[k];
  }
  const double root = 1 / sqrt(beta);
  for (int k = 0; k < d; ++k) gain[k] *= root;
  for (int first = 0; first < d; matrix += 8 * (first + 8), first += 8) {
    const int count = d - first < 8 ? d - first : 8;
    if (grow == 1)
      lower_row<false>(matrix, first, count, grow, gain);
    else
      lower_row<true>(matrix, first, count, grow, gain);
  }
  for (int k = 0; k < d; ++k) gain[k] *= root;
}

// Blocks of a packed lower triangle, and back: row i of the triangle is contiguous in both.
void unpack(const float* packed, int d, double* blocks) {
  double* row = blocks;
  for (int i = 0; i < d; packed += i + 1, row += i / 8 * 8 + 8, ++i)
    for (int k = 0; k <= i; ++k) row[k] = static_cast<double>(packed[k]);
  row = blocks;
  for (int first = 0; first < d; row += 8 * (first + 8), first += 8) {
    double* diagonal = row + first;
    const int width = first + 8, count = d - first < 8 ? d - first : 8;
    for (int i = 0; i < count; ++i)
      for (int k = i + 1; k < 8; ++k) diagonal[i * width + k] = k < count ? diagonal[k * width + i] : 0.0;
  }
}

void pack(const double* blocks, int d, float* packed) {
  for (int i = 0; i < d; packed += i + 1, blocks += i / 8 * 8 + 8, ++i)
    for (int k = 0; k <= i; ++k) packed[k] = static_cast<float>(blocks[k]);
}

}  // namespace

void set_small(Kernels& to) {
  to.small = {gram<false>, gram<true>, multiply,    combine,         project,        clipped_sum,      errors_of_rows,
              clip,        sum_rows,   add_to_rows, errors_of_eight, learn_by_eight, advance_by_eight, apply_blocks,
              rls_update,  unpack,     pack};
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
