// A Bayesian logistic model of pairs (row i, column j), learned online and refitted now and then:
// z = g . f_ij + x_i . (1, v_j, psi_j) + y_j . (1, u_i, phi_i), where x_i = (bias, u_i, coefficients of the column's
// features psi_j), y_j = (bias, v_j, coefficients of the row's features phi_i) and u_i . v_j counts once.
#pragma once

#include <cstdint>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

struct BilinearRule {
  int rank = 0;
  int trials = 1;  // of an observation, whose label is the positive ones less the negative ones
  bool row_bias = true, col_bias = true, features = false;
  int pair_features = 0;                                  // so many of f_ij, which always begins with a 1
  double bias = 1, factor = 1, feature = .5, global = 1;  // variances at the beginning
  double start = .1;                                      // standard deviation of the first factors, to tell them apart
  double noise = 0;  // variance gained at each observation, and a share of it by what all pairs share: the old fades
  double doubt = 1;       // how much of the uncertainty of the other factor a refit counts
  bool refit = false;     // at growing times, from all that was seen
  int sweeps = 8;         // of a refit
  bool mirrored = false;  // rows and columns are of one kind, and what is said of (a, b) holds of (b, a)
  bool linked = false;    // f_ij is what the stream so far says of links; not with `refit`
  bool products = false;  // f_ij is every product of (1, phi_i) and (1, psi_j); not with `refit`
};

// A pair with its features: phi (d_rows), psi (d_cols), f (1 + pair_features). A vertex of -1 is unknown.
struct PairKnown {
  Index i, j;
  const double *phi, *psi, *f;
};

struct BilinearState {
  std::vector<double> rows, cols, global;    // blocks (count, mean (d), covariance (d, d)); the global one has no count
  std::vector<double> row_prior, col_prior;  // mean (d), variance (d)
};

struct PairHistory {
  std::vector<Index> i, j;
  std::vector<std::int8_t> y;  // -1 and 1; -trials to trials where they are several

  Offset size() const { return static_cast<Offset>(y.size()); }
};

// An observation as one of its two vertices sees it.
struct Observation {
  Offset trial;
  Index other;
  std::int8_t y;
};
using VertexLists = std::vector<std::vector<Observation>>;

// The features of every trial's pair, in chunks, so that a long stream never copies them all. One feature is the
// constant and is not stored.
class TrialFeatures {
 public:
  explicit TrialFeatures(int width = 1) : width_(width) {}
  void push(const double* f);
  void clear() { size_ = 0; }
  const double* of(Offset trial) const;

 private:
  static constexpr Offset kChunk = 1024;
  int width_;
  Offset size_ = 0;
  std::vector<std::vector<double>> chunks_;
};

// What a refit reads: the history by rows and by columns, features of vertices phi, psi and of every trial's pair.
struct RefitSource {
  const VertexLists* lists[2];
  const double *phi, *psi;
  const TrialFeatures* features;
};

// A refit that is spread over trials: its position and its sums so far. A copy goes on to the same bits.
struct RefitState {
  Offset model = -1;              // -1: none is under way
  Offset sweep = 0, part = 0;     // part 0: rows, 1: columns, 2: what all pairs share
  Offset vertex = 0, entry = 0;   // the next observation: which of its vertex, which vertex in the order of the stream
  double credit = 0, quota = 0;   // work that may be done at once, and what a trial adds to it
  std::vector<double> matrix, right, sums;
  void resize(int dim);
};

// A step of assumed density filtering: mean += slope P h, P -= curvature P h h^T P, where the log-odds h . mean have
// this variance.
struct LogisticStep {
  double slope, curvature;
};
LogisticStep logistic_step(double odds, double variance, double y, int trials);

class Bilinear {
 public:
  Bilinear(const BilinearRule& rule, int d_rows, int d_cols, std::uint64_t salt);

  // Makes space for the blocks of so many vertices; a block begins with its first observation.
  void resize(Offset n_rows, Offset n_cols);
  // Log-odds with their uncertainty: z / sqrt(1 + pi var(z) / 8). O(d^2).
  double odds(const PairKnown& pair);
  // Learns the label of the pair asked last by one step of assumed density filtering (moment matching). O(d^2).
  void learn(double y);
  // A refit is variational sweeps (Jaakkola and Jordan's bound) over the history, and new variances of the prior by
  // EM. This does about `budget` of its work in place, and returns what it did; the last sweep ends with
  // at.sweep == rule().sweeps.
  double refit(const RefitSource& source, double budget, RefitState& at);
  // The work of a whole refit of n observations.
  double refit_work(Offset n) const;
  // Whether a refit of these observations can stand at `at`.
  bool stands(const RefitSource& source, const RefitState& at) const;

  // Reads the order of the vertices from a history, after the blocks were replaced.
  void follow(const PairHistory& seen);
  const BilinearRule& rule() const { return rule_; }
  BilinearState& state() { return s_; }
  int row_dim() const { return dim_[0]; }
  int col_dim() const { return dim_[1]; }
  int global_dim() const { return 1 + rule_.pair_features; }
  Offset stride(int side) const { return 1 + dim_[side] + static_cast<Offset>(dim_[side]) * dim_[side]; }

 private:
  double* block_of(int side, Index vertex, std::vector<double>& fresh);
  void begin_block(int side, double* block) const;
  double* begun(int side, Index vertex);
  void fill(int side, const double* of_other, const double* known, std::vector<double>& h) const;
  double prior_variance(int side, int k) const;
  bool bias(int side) const { return side == 0 ? rule_.row_bias : rule_.col_bias; }
  void place(const PairKnown& pair, const double* x, const double* y);
  double variance(const double* x, const double* y);
  double of_the_others(int side, const PairKnown& pair, const double* of_other);
  double doubted(const PairKnown& pair, const double* x, const double* y);
  double weight(double z, const PairKnown& pair, const double* x, const double* y);
  double visit_work(int d) const;
  bool sweeps_common(Offset sweep) const;
  int common_sweeps() const;
  Offset vertices(int side) const { return static_cast<Offset>(order_[side].size()); }
  PairKnown seen_pair(int side, Index vertex, const Observation& seen, const RefitSource& source) const;
  double refit_block(int side, const RefitSource& source, double budget, RefitState& at);
  bool plain() const;  // whether refits are of biases and factors alone, without features of vertices or pairs
  void copy_mean(int side, Index vertex);
  template <int kRank, bool kDoubt>
  double plain_weight(double z, Index i, Index j) const;
  template <int kRank, bool kDoubt>
  void add_plain_block(int side, Index vertex, const std::vector<Observation>& seen, Offset end, RefitState& at) const;
  template <int kRank, bool kDoubt>
  void add_plain_global(Index vertex, const std::vector<Observation>& seen, Offset end, RefitState& at) const;
  void add_plain(int side, Index vertex, const std::vector<Observation>& seen, Offset end, RefitState& at) const;
  void add_to_block(int side, const PairKnown& pair, double y, RefitState& at);
  double refit_global(const RefitSource& source, double budget, RefitState& at);
  void add_to_global(const PairKnown& pair, double y, RefitState& at);
  void begin_sums(const double* prior, int d, RefitState& at) const;
  void end_part(RefitState& at) const;
  void learn_prior(int side, const RefitState& at);

  BilinearRule rule_;
  int dim_[2], d_[2];
  std::uint64_t salt_;
  BilinearState s_;
  std::vector<double> means_[2];  // (n, d) of the blocks of a plain model
  std::vector<Index> order_[2];  // vertices with observations, by their first: what is learned hangs on no other number
  std::vector<double> global_prior_;  // mean (d), variance (d)
  std::vector<double> h_[2], g_[2], gf_, fresh_[2];
  PairKnown pair_{};
  double z_ = 0, variance_ = 0;
};

}  // namespace lacunar
