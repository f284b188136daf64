#include "lacunar/pool/bilinear.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace lacunar {
namespace {

constexpr double kPi8 = .39269908169872414;  // pi / 8
constexpr double kPriorCount = 2;            // vertices that the first variances are worth
constexpr double kCommonNoise = .02;         // of a block's noise, for what all pairs share and every pair teaches

// A number in (-1, 1) that depends on the three arguments alone, on every machine.
double draw(std::uint64_t salt, std::uint64_t vertex, std::uint64_t k) {
  std::uint64_t x = salt * 0x9E3779B97F4A7C15u + vertex * 0xBF58476D1CE4E5B9u + k * 0x94D049BB133111EBu + 1;
  for (int round = 0; round < 2; ++round) {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBu;
    x ^= x >> 31;
  }
  return static_cast<double>(x >> 11) * 0x1p-52 - 1;
}

// Calls f(d) with a compile-time constant where blocks of biases and factors have that dimension, so that loops are
// unrolled. Sums keep their order and their bits.
template <class F>
auto with_constant(int d, const F& f) {
  switch (d) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 3: return f(std::integral_constant<int, 3>{});
    case 6: return f(std::integral_constant<int, 6>{});
    case 11: return f(std::integral_constant<int, 11>{});
    default: return f(d);
  }
}

// g (d) = P (d, d) h; returns h . g.
template <class Size>
double times(const double* P, const double* h, Size d, double* g) {
  double form = 0;
  int k = 0;
  for (; k + 4 <= d; k += 4) {  // four sums at a time: one would wait for its own additions
    const double* row = P + k * d;
    double sums[4] = {0, 0, 0, 0};
    for (int l = 0; l < d; ++l)
      for (int m = 0; m < 4; ++m) sums[m] += row[m * d + l] * h[l];
    for (int m = 0; m < 4; ++m) {
      g[k + m] = sums[m];
      form += sums[m] * h[k + m];
    }
  }
  for (; k < d; ++k) {
    double sum = 0;
    for (int l = 0; l < d; ++l) sum += P[k * d + l] * h[l];
    g[k] = sum;
    form += sum * h[k];
  }
  return form;
}

double inner(const double* x, const double* y, int d) {
  double sum = 0;
  for (int k = 0; k < d; ++k) sum += x[k] * y[k];
  return sum;
}

// mean += slope g; P -= curvature g g^T.
template <class Size>
void step(double* mean, double* P, const double* g, Size d, double slope, double curvature, double noise) {
  for (int k = 0; k < d; ++k) {
    mean[k] += slope * g[k];
    const double scaled = curvature * g[k];
    for (int l = 0; l < d; ++l) P[k * d + l] -= scaled * g[l];
    P[k * d + k] += noise;
  }
}

// 2 lambda(xi) of Jaakkola and Jordan: tanh(xi / 2) / (2 xi).
double bound_weight(double xi) {
  if (xi < 1e-4) return .25;
  const double e = std::exp(-xi);
  return (1 - e) / ((1 + e) * 2 * xi);
}

// mean, P <- H^-1 b, H^-1 by Cholesky, in place; H (d, d) is positive definite. O(d^3).
template <class Size>
void solve(double* H, const double* b, Size d, double* mean, double* P) {
  for (int k = 0; k < d; ++k) {
    for (int l = 0; l <= k; ++l) {
      double sum = H[k * d + l];
      for (int m = 0; m < l; ++m) sum -= H[k * d + m] * H[l * d + m];
      H[k * d + l] = k == l ? std::sqrt(std::max(sum, 1e-12)) : sum / H[l * d + l];
    }
  }
  for (int c = 0; c < d; ++c) {  // columns of L^-1 below the diagonal, then P = L^-T L^-1
    for (int k = 0; k < d; ++k) {
      double sum = k == c ? 1 : 0;
      for (int m = c; m < k; ++m) sum -= H[k * d + m] * P[m * d + c];
      P[k * d + c] = k < c ? 0 : sum / H[k * d + k];
    }
  }
  for (int k = 0; k < d; ++k) {
    for (int l = 0; l <= k; ++l) {
      double sum = 0;
      for (int m = k; m < d; ++m) sum += P[m * d + k] * P[m * d + l];
      H[k * d + l] = sum;
    }
  }
  for (int k = 0; k < d; ++k)
    for (int l = 0; l <= k; ++l) P[k * d + l] = P[l * d + k] = H[k * d + l];
  for (int k = 0; k < d; ++k) mean[k] = inner(P + k * d, b, d);
}

}  // namespace

// Several trials of one observation come at once: as often the precision that the curvature of one stands for.
LogisticStep logistic_step(double odds, double variance, double y, int trials) {
  const double kappa = 1 / std::sqrt(1 + kPi8 * variance), p = 1 / (1 + std::exp(-kappa * odds));
  const double slope = kappa * (.5 * (1 + y / trials) - p), curvature = kappa * kappa * std::max(p * (1 - p), 1e-4);
  const double times = trials / (1 + (trials - 1) * curvature * variance);
  return {times * slope, times * curvature};
}

void TrialFeatures::push(const double* f) {
  if (width_ > 1) {
    if (size_ == kChunk * static_cast<Offset>(chunks_.size()))
      chunks_.emplace_back(static_cast<std::size_t>(kChunk * width_));
    std::copy(f, f + width_, chunks_[static_cast<std::size_t>(size_ / kChunk)].data() + size_ % kChunk * width_);
  }
  ++size_;
}

const double* TrialFeatures::of(Offset trial) const {
  static constexpr double kOne = 1;
  return width_ == 1 ? &kOne
                     : chunks_[static_cast<std::size_t>(trial / kChunk)].data() + trial % kChunk * width_;
}

void RefitState::resize(int dim) {
  const auto d = static_cast<std::size_t>(dim);
  matrix.assign(d * d, 0);
  right.assign(d, 0);
  sums.assign(2 * d, 0);
}

Bilinear::Bilinear(const BilinearRule& rule, int d_rows, int d_cols, std::uint64_t salt) : rule_(rule), salt_(salt) {
  d_[0] = rule.features ? d_rows : 0;
  d_[1] = rule.features ? d_cols : 0;
  dim_[0] = rule.row_bias + rule.rank + d_[1];
  dim_[1] = rule.col_bias + rule.rank + d_[0];
  for (const int side : {0, 1}) {
    auto& prior = side == 0 ? s_.row_prior : s_.col_prior;
    prior.assign(2 * static_cast<std::size_t>(dim_[side]), 0);
    for (int k = 0; k < dim_[side]; ++k) prior[static_cast<std::size_t>(dim_[side] + k)] = prior_variance(side, k);
    for (auto* buffer : {&h_[side], &g_[side]}) buffer->resize(static_cast<std::size_t>(dim_[side]));
    fresh_[side].resize(static_cast<std::size_t>(stride(side)));
  }
  const auto G = static_cast<std::size_t>(global_dim());
  gf_.resize(G);
  s_.global.assign(G + G * G, 0);
  for (std::size_t k = 0; k < G; ++k) s_.global[G + k * G + k] = rule.global;
  global_prior_.assign(G, 0);
  global_prior_.resize(2 * G, rule.global);
}

// The variance of a coordinate of x_i or y_j at the beginning.
double Bilinear::prior_variance(int side, int k) const {
  if (bias(side) && k == 0) return rule_.bias;
  return k < bias(side) + rule_.rank ? rule_.factor : rule_.feature;
}

void Bilinear::resize(Offset n_rows, Offset n_cols) {
  s_.rows.resize(static_cast<std::size_t>(n_rows * stride(0)));
  s_.cols.resize(static_cast<std::size_t>(n_cols * stride(1)));
  if (!plain()) return;
  means_[0].resize(static_cast<std::size_t>(n_rows * dim_[0]));
  means_[1].resize(static_cast<std::size_t>(n_cols * dim_[1]));
}

// Copies the mean of a block into means_, which refits read: packed, those of a long stream fit in the cache.
void Bilinear::copy_mean(int side, Index vertex) {
  if (!plain()) return;
  const int d = dim_[side];
  const double* block = (side == 0 ? s_.rows : s_.cols).data() + vertex * stride(side);
  std::copy_n(block + 1, d, means_[side].data() + static_cast<Offset>(vertex) * d);
}

void Bilinear::follow(const PairHistory& seen) {
  std::vector<char> listed[2];
  for (const int side : {0, 1}) {
    const auto& index = side == 0 ? seen.i : seen.j;
    listed[side].resize((side == 0 ? s_.rows : s_.cols).size() / static_cast<std::size_t>(stride(side)), 0);
    order_[side].clear();
    for (const Index vertex : index) {
      char& is_listed = listed[side][static_cast<std::size_t>(vertex)];
      if (is_listed) continue;
      order_[side].push_back(vertex);
      copy_mean(side, vertex);
      is_listed = 1;
    }
  }
}

// Fills the block of a vertex without observations from the prior.
void Bilinear::begin_block(int side, double* block) const {
  const int d = dim_[side];
  const double* prior = (side == 0 ? s_.row_prior : s_.col_prior).data();
  std::fill(block, block + stride(side), 0);
  for (int k = 0; k < d; ++k) {
    block[1 + k] = prior[k];
    block[1 + d + k * d + k] = prior[d + k];
  }
}

// The block of a vertex that learns. At its first observation factors get a small start that depends on how many
// vertices came before.
double* Bilinear::begun(int side, Index vertex) {
  double* block = (side == 0 ? s_.rows : s_.cols).data() + vertex * stride(side);
  if (block[0] > 0) return block;
  begin_block(side, block);
  for (int k = 0; k < rule_.rank; ++k)
    block[1 + bias(side) + k] += rule_.start * draw(salt_ + static_cast<std::uint64_t>(side), order_[side].size(),
                                                    static_cast<std::uint64_t>(k));
  order_[side].push_back(vertex);
  return block;
}

double* Bilinear::block_of(int side, Index vertex, std::vector<double>& fresh) {
  auto& blocks = side == 0 ? s_.rows : s_.cols;
  if (vertex >= 0) {
    double* block = blocks.data() + vertex * stride(side);
    if (block[0] > 0) return block;
  }
  begin_block(side, fresh.data());
  return fresh.data();
}

// h: what multiplies x_i, (1, v_j, psi_j), for side 0; what multiplies y_j, (1, u_i, phi_i), for side 1.
void Bilinear::fill(int side, const double* of_other, const double* known, std::vector<double>& h) const {
  double* to = h.data();
  if (bias(side)) *to++ = 1;
  const double* factors = of_other + 1 + bias(1 - side);
  to = std::copy(factors, factors + rule_.rank, to);
  if (known != nullptr) std::copy(known, known + d_[1 - side], to);
}

// Computes z_ and h_ of a pair from its blocks x and y.
void Bilinear::place(const PairKnown& pair, const double* x, const double* y) {
  pair_ = pair;
  fill(0, y, pair.psi, h_[0]);
  fill(1, x, pair.phi, h_[1]);
  z_ = inner(s_.global.data(), pair.f, global_dim()) + inner(x + 1, h_[0].data(), dim_[0]) +
       inner(y + 1, h_[1].data(), dim_[1]) - inner(x + 1 + bias(0), h_[0].data() + bias(0), rule_.rank);
}

double Bilinear::odds(const PairKnown& pair) {
  const double *x = block_of(0, pair.i, fresh_[0]), *y = block_of(1, pair.j, fresh_[1]);
  place(pair, x, y);
  variance_ = variance(x, y);
  return z_ / std::sqrt(1 + kPi8 * variance_);
}

double Bilinear::variance(const double* x, const double* y) {
  const int G = global_dim();
  const auto of_block = [&](int side, const double* block) {
    return with_constant(dim_[side], [&](auto d) { return times(block + 1 + d, h_[side].data(), d, g_[side].data()); });
  };
  return times(s_.global.data() + G, pair_.f, G, gf_.data()) + of_block(0, x) + of_block(1, y);
}

void Bilinear::learn(double y) {
  const auto [slope, curvature] = logistic_step(z_, variance_, y, rule_.trials);
  const int G = global_dim();
  step(s_.global.data(), s_.global.data() + G, gf_.data(), G, slope, curvature, kCommonNoise * rule_.noise);
  for (const int side : {0, 1}) {
    const Index vertex = side == 0 ? pair_.i : pair_.j;
    double* block = begun(side, vertex);
    block[0] += 1;
    with_constant(dim_[side], [&](auto d) {
      step(block + 1, block + 1 + d, g_[side].data(), d, slope, curvature, rule_.noise);
    });
    copy_mean(side, vertex);
  }
}

// z of an observation without the terms of one side's block; h_[side] becomes what multiplies that block.
double Bilinear::of_the_others(int side, const PairKnown& pair, const double* of_other) {
  fill(side, of_other, side == 0 ? pair.psi : pair.phi, h_[side]);
  const double* mine = side == 0 ? pair.phi : pair.psi;
  double sum = inner(s_.global.data(), pair.f, global_dim());
  if (bias(1 - side)) sum += of_other[1];
  if (d_[side] > 0) sum += inner(of_other + 1 + bias(1 - side) + rule_.rank, mine, d_[side]);
  return sum;
}

// The variance of z; products of two factors' covariances count by `doubt`.
double Bilinear::doubted(const PairKnown& pair, const double* x, const double* y) {
  place(pair, x, y);
  const double *P = x + 1 + dim_[0], *Q = y + 1 + dim_[1];
  double spread = variance(x, y);
  for (int k = 0; k < rule_.rank; ++k)
    for (int l = 0; l < rule_.rank; ++l)
      spread += rule_.doubt * P[(bias(0) + k) * dim_[0] + bias(0) + l] * Q[(bias(1) + k) * dim_[1] + bias(1) + l];
  return spread;
}

PairKnown Bilinear::seen_pair(int side, Index vertex, const Observation& seen, const RefitSource& source) const {
  const Index i = side == 0 ? vertex : seen.other, j = side == 0 ? seen.other : vertex;
  return {i, j, d_[0] > 0 ? source.phi + static_cast<Offset>(i) * d_[0] : nullptr,
          d_[1] > 0 ? source.psi + static_cast<Offset>(j) * d_[1] : nullptr, source.features->of(seen.trial)};
}

// The weight of an observation, from the mean of z and its square: by the mean alone where doubt is 0.
double Bilinear::weight(double z, const PairKnown& pair, const double* x, const double* y) {
  return rule_.trials * bound_weight(rule_.doubt == 0 ? std::abs(z) : std::sqrt(z * z + doubted(pair, x, y)));
}

// Work is counted in products of a block of d numbers; to look up an observation costs as much as 80 of them (timed).
double Bilinear::visit_work(int d) const { return d == 0 ? 0 : (rule_.doubt == 0 ? 1 : 2) * (80.0 + d * d); }

// A constant alone, which the means of biases follow, is refitted in every fourth sweep and in the last.
bool Bilinear::sweeps_common(Offset sweep) const {
  return !plain() || sweep % 4 == 3 || sweep + 1 == rule_.sweeps;
}

int Bilinear::common_sweeps() const { return plain() ? (rule_.sweeps + 3) / 4 : rule_.sweeps; }

static double solve_work(int d) { return d == 0 ? 0 : 20.0 + d * d * d; }

double Bilinear::refit_work(Offset n) const {
  const int G = global_dim();
  const double common = 1 + static_cast<double>(n) * visit_work(G) + solve_work(G);  // 1 for the end of every part
  double work = 2;
  for (const int side : {0, 1})
    work += static_cast<double>(n) * visit_work(dim_[side]) +
            static_cast<double>(vertices(side)) * solve_work(dim_[side]);
  return rule_.sweeps * work + common_sweeps() * common;
}

double Bilinear::refit(const RefitSource& source, double budget, RefitState& at) {
  double work = 0;
  while (work < budget && at.sweep < rule_.sweeps)
    work += at.part < 2 ? refit_block(static_cast<int>(at.part), source, budget - work, at)
                        : refit_global(source, budget - work, at);
  return work;
}

bool Bilinear::stands(const RefitSource& source, const RefitState& at) const {
  const int side = at.part == 1;
  const bool in_range = at.sweep >= 0 && at.sweep < rule_.sweeps && at.part >= 0 && at.part < 3 && at.vertex >= 0 &&
                        at.vertex <= vertices(side) && at.entry >= 0;
  if (!in_range || at.entry == 0) return in_range;
  if (at.vertex == vertices(side)) return false;
  const Index vertex = order_[side][static_cast<std::size_t>(at.vertex)];
  return at.entry < static_cast<Offset>((*source.lists[side])[static_cast<std::size_t>(vertex)].size());
}

void Bilinear::begin_sums(const double* prior, int d, RefitState& at) const {
  std::fill(at.matrix.begin(), at.matrix.begin() + d * d, 0);
  for (int k = 0; k < d; ++k) {
    at.matrix[static_cast<std::size_t>(k * d + k)] = 1 / prior[d + k];
    at.right[static_cast<std::size_t>(k)] = prior[k] / prior[d + k];
  }
}

void Bilinear::end_part(RefitState& at) const {
  const bool last = at.part == 2 || (at.part == 1 && !sweeps_common(at.sweep));
  at.sweep += last;
  at.part = last ? 0 : at.part + 1;
  at.vertex = at.entry = 0;
  std::fill(at.sums.begin(), at.sums.end(), 0);
}

// The observations that work is left for, of those that a vertex has from at.entry on; one at least.
static Offset end_of_piece(const std::vector<Observation>& seen, const RefitState& at, double visits) {
  const auto left = static_cast<Offset>(seen.size()) - at.entry;
  return at.entry + (visits >= static_cast<double>(left) ? left : std::max<Offset>(1, static_cast<Offset>(visits)));
}

// Refits the block of one vertex with all else fixed, or a part of its observations; after the last vertex ends the
// side. Vertices come in the order of the stream: answers may depend on it and on no numbering.
double Bilinear::refit_block(int side, const RefitSource& source, double budget, RefitState& at) {
  const int d = dim_[side];
  if (d == 0 || at.vertex == vertices(side)) {
    learn_prior(side, at);
    end_part(at);
    return 1;
  }
  const Index vertex = order_[side][static_cast<std::size_t>(at.vertex)];
  const auto& seen = (*source.lists[side])[static_cast<std::size_t>(vertex)];
  if (at.entry == 0) begin_sums((side == 0 ? s_.row_prior : s_.col_prior).data(), d, at);
  const Offset first = at.entry, end = end_of_piece(seen, at, budget / visit_work(d));
  if (plain()) add_plain(side, vertex, seen, end, at);
  for (; at.entry < end; ++at.entry) {
    const Observation& one = seen[static_cast<std::size_t>(at.entry)];
    add_to_block(side, seen_pair(side, vertex, one, source), one.y, at);
  }
  const double work = static_cast<double>(end - first) * visit_work(d);
  if (end < static_cast<Offset>(seen.size())) return work;
  double* block = (side == 0 ? s_.rows : s_.cols).data() + vertex * stride(side);
  with_constant(d, [&](auto size) {
    solve(at.matrix.data(), at.right.data(), size, block + 1, block + 1 + size);
  });
  for (int k = 0; k < d; ++k) {
    at.sums[static_cast<std::size_t>(k)] += block[1 + k];
    at.sums[static_cast<std::size_t>(d + k)] += block[1 + k] * block[1 + k] + block[1 + d + k * d + k];
  }
  copy_mean(side, vertex);
  at.entry = 0;
  ++at.vertex;
  return work + solve_work(d);
}

bool Bilinear::plain() const {
  return rule_.refit && bias(0) && bias(1) && d_[0] == 0 && d_[1] == 0 && global_dim() == 1;
}

// The same sums as `add_to_block` and `add_to_global`, to the bit, for biases and `kRank` factors alone: most of the
// work of a stream, which is twice as fast where the compiler knows the number of factors.
template <int kRank, bool kDoubt>
double Bilinear::plain_weight(double z, Index i, Index j) const {
  if constexpr (!kDoubt) return rule_.trials * bound_weight(std::abs(z));
  constexpr int d = 1 + kRank;
  const double *x = s_.rows.data() + i * stride(0), *y = s_.cols.data() + j * stride(1);
  const double *P = x + 1 + d, *Q = y + 1 + d;
  const auto form = [](const double* cov, const double* of_other) {
    double total = 0;
    for (int k = 0; k < d; ++k) {
      double sum = cov[k * d];
      for (int l = 1; l < d; ++l) sum += cov[k * d + l] * of_other[1 + l];
      total += k == 0 ? sum : sum * of_other[1 + k];
    }
    return total;
  };
  double spread = s_.global[1] + form(P, y) + form(Q, x);
  for (int k = 1; k < d; ++k)
    for (int l = 1; l < d; ++l) spread += rule_.doubt * P[k * d + l] * Q[k * d + l];
  return rule_.trials * bound_weight(std::sqrt(z * z + spread));
}

template <int kRank, bool kDoubt>
void Bilinear::add_plain_block(int side, Index vertex, const std::vector<Observation>& seen, Offset end,
                               RefitState& at) const {
  constexpr int d = 1 + kRank;
  const double *others = means_[1 - side].data(), common = s_.global[0];
  double H[d * d], b[d], own[d], h[d];
  std::copy_n(at.matrix.data(), d * d, H);
  std::copy_n(at.right.data(), d, b);
  std::copy_n(means_[side].data() + static_cast<Offset>(vertex) * d, d, own);
  h[0] = 1;
  for (; at.entry < end; ++at.entry) {
    const Observation& one = seen[static_cast<std::size_t>(at.entry)];
    const double* other = others + static_cast<Offset>(one.other) * d;
    for (int k = 1; k < d; ++k) h[k] = other[k];
    const double known = common + other[0];
    double product = 0;
    for (int k = 0; k < d; ++k) product += own[k] * h[k];
    const Index i = side == 0 ? vertex : one.other, j = side == 0 ? one.other : vertex;
    const double w = plain_weight<kRank, kDoubt>(known + product, i, j), aim = .5 * one.y - w * known;
    for (int k = 0; k < d; ++k) {
      b[k] += aim * h[k];
      for (int l = 0; l <= k; ++l) H[k * d + l] += w * h[k] * h[l];
    }
    if constexpr (kDoubt) {
      const double* Q = (side == 0 ? s_.cols : s_.rows).data() + one.other * stride(1 - side) + 1 + d;
      const double scaled = rule_.doubt * w;
      for (int k = 1; k < d; ++k)
        for (int l = 1; l <= k; ++l) H[k * d + l] += scaled * Q[k * d + l];
    }
  }
  std::copy_n(H, d * d, at.matrix.data());
  std::copy_n(b, d, at.right.data());
}

template <int kRank, bool kDoubt>
void Bilinear::add_plain_global(Index vertex, const std::vector<Observation>& seen, Offset end, RefitState& at) const {
  constexpr int d = 1 + kRank;
  const double *x = means_[0].data() + static_cast<Offset>(vertex) * d, common = s_.global[0];
  double H = at.matrix[0], b = at.right[0];
  for (; at.entry < end; ++at.entry) {
    const Observation& one = seen[static_cast<std::size_t>(at.entry)];
    const double* other = means_[1].data() + static_cast<Offset>(one.other) * d;
    double product = x[0];
    for (int k = 1; k < d; ++k) product += x[k] * other[k];
    const double z = common + other[0] + product, w = plain_weight<kRank, kDoubt>(z, vertex, one.other);
    b += .5 * one.y - w * (z - common);
    H += w;
  }
  at.matrix[0] = H;
  at.right[0] = b;
}

// Adds a vertex's observations up to `end` to the sums of its block (side 0, 1), or a row's to those of the shared
// coefficients (side 2).
void Bilinear::add_plain(int side, Index vertex, const std::vector<Observation>& seen, Offset end,
                         RefitState& at) const {
  const auto add = [&](auto rank, auto doubt) {
    if (side == 2) return add_plain_global<rank(), doubt()>(vertex, seen, end, at);
    add_plain_block<rank(), doubt()>(side, vertex, seen, end, at);
  };
  using std::integral_constant;
  const auto of_rank = [&](auto rank) {
    return rule_.doubt == 0 ? add(rank, std::false_type{}) : add(rank, std::true_type{});
  };
  switch (rule_.rank) {
    case 0: return of_rank(integral_constant<int, 0>{});
    case 1: return of_rank(integral_constant<int, 1>{});
    case 2: return of_rank(integral_constant<int, 2>{});
    case 5: return of_rank(integral_constant<int, 5>{});
    case 10: return of_rank(integral_constant<int, 10>{});
    default: return;  // the loop of the caller goes over them
  }
}

void Bilinear::add_to_block(int side, const PairKnown& pair, double y, RefitState& at) {
  const int d = dim_[side], e = dim_[1 - side];
  const double *x = s_.rows.data() + pair.i * stride(0), *v = s_.cols.data() + pair.j * stride(1);
  const double *block = side == 0 ? x : v, *its_block = side == 0 ? v : x;
  const double known = of_the_others(side, pair, its_block);
  const double* h = h_[side].data();
  const double w = weight(known + inner(block + 1, h, d), pair, x, v), aim = .5 * y - w * known;
  double *H = at.matrix.data(), *b = at.right.data();
  for (int k = 0; k < d; ++k) {
    b[k] += aim * h[k];
    for (int l = 0; l <= k; ++l) H[k * d + l] += w * h[k] * h[l];
  }
  if (rule_.doubt == 0) return;
  const double* Q = its_block + 1 + e;
  const int mine = bias(side), its = bias(1 - side);
  for (int k = 0; k < rule_.rank; ++k)
    for (int l = 0; l <= k; ++l) H[(mine + k) * d + mine + l] += rule_.doubt * w * Q[(its + k) * e + its + l];
}

// Refits the coefficients that all pairs share, or a part of that, row by row.
double Bilinear::refit_global(const RefitSource& source, double budget, RefitState& at) {
  const int G = global_dim();
  if (at.vertex == vertices(0)) {
    solve(at.matrix.data(), at.right.data(), G, s_.global.data(), s_.global.data() + G);
    end_part(at);
    return 1 + solve_work(G);
  }
  if (at.vertex == 0 && at.entry == 0) begin_sums(global_prior_.data(), G, at);
  const Index vertex = order_[0][static_cast<std::size_t>(at.vertex)];
  const auto& seen = (*source.lists[0])[static_cast<std::size_t>(vertex)];
  const Offset first = at.entry, end = end_of_piece(seen, at, budget / visit_work(G));
  if (plain()) add_plain(2, vertex, seen, end, at);
  for (; at.entry < end; ++at.entry) {
    const Observation& one = seen[static_cast<std::size_t>(at.entry)];
    add_to_global(seen_pair(0, vertex, one, source), one.y, at);
  }
  if (end == static_cast<Offset>(seen.size())) {
    at.entry = 0;
    ++at.vertex;
  }
  return static_cast<double>(end - first) * visit_work(G);
}

void Bilinear::add_to_global(const PairKnown& pair, double y, RefitState& at) {
  const int G = global_dim();
  const double *x = s_.rows.data() + pair.i * stride(0), *v = s_.cols.data() + pair.j * stride(1), *f = pair.f;
  const double z = of_the_others(0, pair, v) + inner(x + 1, h_[0].data(), dim_[0]), w = weight(z, pair, x, v);
  const double aim = .5 * y - w * (z - inner(s_.global.data(), f, G));
  double *H = at.matrix.data(), *b = at.right.data();
  for (int k = 0; k < G; ++k) {
    b[k] += aim * f[k];
    for (int l = 0; l <= k; ++l) H[k * G + l] += w * f[k] * f[l];
  }
}

// Mean and variance of a coordinate over the vertices swept; factors keep mean 0.
void Bilinear::learn_prior(int side, const RefitState& at) {
  const int d = dim_[side];
  auto& prior = side == 0 ? s_.row_prior : s_.col_prior;
  const auto count = static_cast<double>(at.vertex);
  for (int k = 0; k < d; ++k) {
    const double sum = at.sums[static_cast<std::size_t>(k)], squares = at.sums[static_cast<std::size_t>(d + k)];
    const bool centred = k >= bias(side) + rule_.rank;
    const double mean = centred ? sum / (count + kPriorCount) : 0;
    const auto coordinate = static_cast<std::size_t>(k);
    prior[coordinate] = mean;
    prior[coordinate + static_cast<std::size_t>(d)] =
        (squares - 2 * mean * sum + count * mean * mean + kPriorCount * prior_variance(side, k)) /
        (count + kPriorCount);
  }
}

}  // namespace lacunar
