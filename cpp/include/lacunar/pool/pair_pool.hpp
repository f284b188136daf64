// A pool of experts on a stream of labelled pairs (row, column): every one of them gives log-odds of the label,
// logistic mixers join them, and a hedge with switching (fixed share in log loss) follows the best of experts and
// mixers.
#pragma once

#include <utility>
#include <vector>

#include "lacunar/pool/bilinear.hpp"

namespace lacunar {

// Side information of the rows (or columns).
struct PoolSide {
  Offset size = 0;
  int d = 0;                   // features
  std::vector<double> phi;     // (size, d)
  std::vector<int> levels;     // of every categorical column
  std::vector<Index> groups;   // (size, levels.size()), -1 where unknown
  std::vector<Offset> indptr;  // a graph of neighbours, or empty
  std::vector<Index> near;     // ascending within a vertex
  std::vector<double> weight;
  int wide = 0;                  // standardised features, which pairs of one graph compare
  std::vector<double> compared;  // (size, wide), rows of length 1
};

struct PoolRule {
  std::vector<BilinearRule> bilinear;
  int trials = 1;              // of an observation, see BilinearRule
  double smoothing = 1;        // how many observations the prior of a count is worth
  double refit_growth = 1.25;  // of the stream from one refit to the next
  Offset first_refit = 32;
  double refit_share = .005;  // a refit takes this share of the trials before it; 0 refits at once
  double mixer_variance = .2;        // of the mixers' weights at the beginning
  double correction_variance = .02;  // of the weights of the mixers by counts, which add to the first
  int extra = 0;                     // experts whose log-odds the caller gives
  bool same = false;                 // rows and columns have the same side information
  bool shared_ids = false;                  // an id may be a row and a column
};

// Counts of the labels of every pair, in many small open hash tables, so that none takes long to grow.
class CellCounts {
 public:
  struct Pair {
    std::int32_t negative, positive;
  };
  Pair of(Index i, Index j) const;
  void add(Index i, Index j, int negative, int positive);

 private:
  struct Part {
    std::vector<std::int64_t> keys;
    std::vector<Pair> counts;
    std::size_t used = 0;
    std::size_t place(std::int64_t key) const;
    void grow();
  };
  static std::size_t part_of(std::int64_t key);
  std::vector<Part> parts_ = std::vector<Part>(256);
};

// Ids that may be rows and columns: one number for both sides of an id, and the links (pairs seen) of every number.
class SharedIds {
 public:
  void resize(int side, Offset size);
  void set_shared(Index row, Index col);
  // The number of a vertex of a side; -1 where no pair had its id on either side. Numbers follow the stream's order.
  Index of(int side, Index vertex) const;
  Index number(int side, Index vertex);
  void link(Index a, Index b, double y);
  void clear();
  Offset size() const { return static_cast<Offset>(links_.size()); }
  // f (kFeatures): a constant, then counts of the links that a and b share. O(links of a and b).
  static constexpr int kFeatures = 8;
  void features(Index a, Index b, double* f);

 private:
  std::vector<Index> other_side_[2], number_[2];
  struct Link {
    Index id;
    int labels;  // 1: a negative one came, 2: a positive one, 3: both
  };
  struct Links {
    std::vector<Link> others;  // ascending
    int count[2] = {0, 0};     // by label
    std::vector<Link>::iterator find(Index id);
  };
  std::vector<Links> links_;  // of a number
  std::vector<int> mark_;     // of a number: its labels at the vertex asked about; all 0 between calls
};

// Numbers that learning changes, beside those of the bilinear models.
struct PoolState {
  PairHistory seen;
  std::vector<double> rows, cols;   // (size, stride): counts of labels, by groups of the other side
  std::vector<double> global;       // counts of labels
  std::vector<double> mixers;       // (kMixers, buckets, mean and covariance)
  std::vector<double> log_weights;  // of the hedge
  std::vector<double> path;         // trials and weights at every refit
  double next_refit = 0;
  RefitState refit;
};

class PairPool {
 public:
  static constexpr int kMixers = 2, kBuckets = 16;

  PairPool(PoolRule rule, PoolSide rows, PoolSide cols);

  // Adds vertices with their side information; graphs do not grow.
  void grow(int side, const PoolSide& more);
  // Replaces the features (size, d) of a side, to which a vertex has added a direction.
  void set_features(int side, std::vector<double> phi) { sides_[side].phi = std::move(phi); }
  void set_shared(Index row, Index col) { shared_ids_.set_shared(row, col); }
  Offset size(int side) const { return sides_[side].size; }
  int features(int side) const { return sides_[side].d; }
  int experts() const { return n_experts_; }  // those from outside last
  int hedged() const { return n_experts_ + kMixers; }
  // For ids without a vertex on their own side: their vertex on the other side, or -1.
  struct Mirrored {
    Index row = -1, col = -1;
  };
  // P(y = 1) of a pair; -1 is a vertex that is not known. extra: log-odds (rule.extra), NaN asleep.
  double probability(Index i, Index j, const double* extra, Mirrored mirrored);
  // Predicts and learns n observations in order: y = 1 or -1, of several trials the positive less the negative ones.
  // out (n): P(y = 1) before each. chances (n, hedged()): that of every expert and mixer; may be null. After
  // std::bad_alloc within a trial the pool must not be used.
  void run(Offset n, const Index* i, const Index* j, const double* y, const double* extra, double* out,
           double* chances);
  const std::vector<double>& odds() const { return odds_; }
  double mixture() const { return mixture_; }  // P(y = 1) of the pair asked last
  PoolState& state() { return s_; }
  std::vector<Bilinear>& models() { return models_; }
  void remember(PairHistory seen);  // replaces the history
  bool stands(const RefitState& at) const;  // whether a refit of the history can stand there
  std::vector<double> weights() const;

 private:
  double rate(const double* counts, double prior) const;
  void count_experts(Index i, Index j);
  void group_experts(int side, Index i, Index j, double prior);
  double vote(int side, Index member, double prior) const;
  void pair_features(Index i, Index j, double* f) const;
  void fill_products(Index i, Index j);
  PairKnown known(const Bilinear& model, Index i, Index j) const;
  PairKnown mirrored(const Bilinear& model) const { return {col_id_, row_id_, nullptr, nullptr, f_of(model)}; }
  const double* f_of(const Bilinear& model) const {
    return model.rule().linked ? links_.data() : model.rule().products ? products_.data() : f_.data();
  }
  void learn_shared(Index i, Index j, double y);
  void list(Offset trial, Index i, Index j, double y);
  PairHistory history_of(const Bilinear& model) const;
  void gather(Index i, Index j, const double* extra);
  void ask(Index i, Index j, const double* extra, Mirrored mirrored);
  void learn_as_unseen(Index i, Index j, double y);
  void weigh(int k, const double* mean);
  double* mixer(int k, int bucket) { return s_.mixers.data() + (k * kBuckets + bucket) * mixer_stride(); }
  Offset mixer_stride() const { return mixer_dim_ + static_cast<Offset>(mixer_dim_) * mixer_dim_; }
  void mix();
  void learn(Index i, Index j, double y);
  void learn_counts(Index i, Index j, double y);
  void count_cell(CellCounts& cells, Index i, Index j, double y) const;
  void learn_mixer(int k, double y);
  void learn_hedge(double y);
  void begin_refit();
  void next_model(Offset first);
  void refit();
  RefitSource source_of(const Bilinear& model) const;
  void relink();

  PoolRule rule_;
  PoolSide sides_[2];
  std::vector<Bilinear> models_;
  CellCounts cells_;
  SharedIds shared_ids_;
  PoolState s_;
  int n_experts_ = 0, mixer_dim_ = 0, pair_features_ = 1;
  Offset group_total_[2] = {0, 0};
  Offset count_stride_[2] = {2, 2};
  // Of the pair asked last:
  std::vector<double> odds_, chance_, inputs_, f_, links_, products_;  // products_ is empty where no model reads it
  Index row_id_ = -1, col_id_ = -1;    // its common numbers
  Index asked_[2] = {-1, -1};  // row and column, -1 where they count as never seen
  double product_odds_ = 0;
  bool products_known_ = false;  // whether `product_odds_` are of the pair that is asked next
  int bucket_ = 0,
      novelty_ = 0;  // of the pair: how much was seen of row and column; whether one of them, or both, are new
  std::vector<double> gain_[kMixers];  // covariance of a mixer times its inputs
  double mixed_[kMixers] = {}, spread_[kMixers] = {}, mixture_ = .5;
  VertexLists lists_[2], shared_lists_;  // the history by rows, by columns, and by common numbers in both directions
  TrialFeatures features_;
};

}  // namespace lacunar
