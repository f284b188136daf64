#include "lacunar/pool/pair_pool.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lacunar {
namespace {

constexpr double kPi8 = .39269908169872414;
constexpr double kFarthest = 7;          // log-odds of an expert are cut there: a mistake costs 7 at most
constexpr int kGraphFeatures = 8;        // of a pair in a graph, behind the constant
constexpr int kMostProducts = 16;        // of the features of two vertices of one graph
constexpr Offset kMostNeighbours = 400;  // that vote

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double odds_of(double p) {
  const double q = std::clamp(p, 1e-4, 1 - 1e-4);
  return std::log(q / (1 - q));
}

constexpr int kMostLinks = 400;  // of a vertex that are kept

int bucket_of(double count) { return count < 1 ? 0 : count < 4 ? 1 : count < 16 ? 2 : 3; }

std::int64_t key_of(Index i, Index j) { return (static_cast<std::int64_t>(i) << 32) | static_cast<std::uint32_t>(j); }

}  // namespace

// -- cells ------------------------------------------------------------------------------------------------------------

static std::uint64_t hash_of(std::int64_t key) {
  const auto x = static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u;
  return x ^ (x >> 29);
}

std::size_t CellCounts::part_of(std::int64_t key) { return hash_of(key) >> 56; }

std::size_t CellCounts::Part::place(std::int64_t key) const {
  std::size_t at = hash_of(key) & (keys.size() - 1);
  while (keys[at] != key && keys[at] >= 0) at = (at + 1) & (keys.size() - 1);
  return at;
}

void CellCounts::Part::grow() {
  const std::size_t size = std::max<std::size_t>(16, 2 * keys.size());
  Part larger;
  larger.keys.assign(size, -1);
  larger.counts.assign(size, {0, 0});
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (keys[k] < 0) continue;
    const std::size_t at = larger.place(keys[k]);
    larger.keys[at] = keys[k];
    larger.counts[at] = counts[k];
  }
  keys.swap(larger.keys);
  counts.swap(larger.counts);
}

CellCounts::Pair CellCounts::of(Index i, Index j) const {
  if (i < 0 || j < 0) return {0, 0};
  const Part& part = parts_[part_of(key_of(i, j))];
  if (part.keys.empty()) return {0, 0};
  const std::size_t at = part.place(key_of(i, j));
  return part.keys[at] < 0 ? Pair{0, 0} : part.counts[at];
}

void CellCounts::add(Index i, Index j, int negative, int positive) {
  Part& part = parts_[part_of(key_of(i, j))];
  if (2 * (part.used + 1) > part.keys.size()) part.grow();
  const std::size_t at = part.place(key_of(i, j));
  part.used += part.keys[at] < 0;
  part.keys[at] = key_of(i, j);
  part.counts[at].negative += negative;
  part.counts[at].positive += positive;
}

// -- shared ids ------------------------------------------------------------------------------------------------------

void SharedIds::resize(int side, Offset size) {
  other_side_[side].resize(static_cast<std::size_t>(size), -1);
  number_[side].resize(static_cast<std::size_t>(size), -1);
}

void SharedIds::set_shared(Index row, Index col) {
  other_side_[0].at(static_cast<std::size_t>(row)) = col;
  other_side_[1].at(static_cast<std::size_t>(col)) = row;
}

Index SharedIds::of(int side, Index vertex) const {
  if (vertex < 0) return -1;
  const Index own = number_[side][static_cast<std::size_t>(vertex)],
              mirrored = other_side_[side][static_cast<std::size_t>(vertex)];
  return own >= 0 || mirrored < 0 ? own : number_[1 - side][static_cast<std::size_t>(mirrored)];
}

Index SharedIds::number(int side, Index vertex) {
  Index number = of(side, vertex);
  if (number < 0) {
    number = static_cast<Index>(links_.size());
    links_.emplace_back();
  }
  return number_[side][static_cast<std::size_t>(vertex)] = number;
}

void SharedIds::link(Index a, Index b, double y) {
  const int label = y > 0;
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    Links& of_one = links_[static_cast<std::size_t>(from)];
    if (of_one.count[label] == kMostLinks) continue;
    auto place = of_one.find(to);
    if (place == of_one.others.end() || place->id != to) place = of_one.others.insert(place, {to, 0});
    of_one.count[label] += !(place->labels & 1 << label);
    place->labels |= 1 << label;
  }
}

std::vector<SharedIds::Link>::iterator SharedIds::Links::find(Index id) {
  return std::lower_bound(others.begin(), others.end(), id, [](const Link& link, Index i) { return link.id < i; });
}

void SharedIds::clear() {
  for (const int side : {0, 1}) std::fill(number_[side].begin(), number_[side].end(), -1);
  links_.clear();
}

void SharedIds::features(Index a, Index b, double* f) {
  std::fill(f, f + kFeatures, 0);
  f[0] = 1;
  if (a < 0 || b < 0) return;
  const Links &of_a = links_[static_cast<std::size_t>(a)], &of_b = links_[static_cast<std::size_t>(b)];
  mark_.resize(links_.size(), 0);
  for (const Link& link : of_a.others) mark_[static_cast<std::size_t>(link.id)] = link.labels;
  int met[4][4] = {};  // others of b by their labels at a, 0 for none, and at b
  for (const Link& link : of_b.others) ++met[mark_[static_cast<std::size_t>(link.id)]][link.labels];
  const int labels = mark_[static_cast<std::size_t>(b)];
  for (const Link& link : of_a.others) mark_[static_cast<std::size_t>(link.id)] = 0;
  double common[2][2];
  for (const int x : {0, 1})
    for (const int y : {0, 1})
      common[x][y] = met[1 + x][1 + y] + met[1 + x][3] + met[3][1 + y] + met[3][3];
  f[1] = std::log1p(common[1][1]);
  f[2] = std::log1p(common[0][1] + common[1][0]);
  f[3] = std::log1p(common[0][0]);
  f[4] = (labels >> 1) - (labels & 1);
  const auto size_a = static_cast<double>(of_a.count[1]), size_b = static_cast<double>(of_b.count[1]);
  f[5] = .5 * (std::log1p(size_a) + std::log1p(size_b)) - 1;
  f[6] = 3 * common[1][1] / std::sqrt(std::max(size_a * size_b, 1.0));
  f[7] = a == b;
}

// -- the pool ---------------------------------------------------------------------------------------------------------

PairPool::PairPool(PoolRule rule, PoolSide rows, PoolSide cols)
    : rule_(std::move(rule)), sides_{std::move(rows), std::move(cols)} {
  for (const int side : {0, 1})
    for (const int levels : sides_[side].levels) group_total_[side] += levels;
  for (const int side : {0, 1}) count_stride_[side] = 2 * (1 + group_total_[1 - side]);
  if (rule_.same) pair_features_ = 1 + kGraphFeatures + std::min(kMostProducts, std::min(sides_[0].d, sides_[1].d));
  for (auto& form : rule_.bilinear) {
    form.trials = rule_.trials;
    const int n_products = (1 + sides_[0].d) * (1 + sides_[1].d);
    form.pair_features = form.linked     ? SharedIds::kFeatures - 1
                         : form.products ? n_products - 1
                                         : std::min(form.pair_features, pair_features_ - 1);
    if (form.products) products_.assign(static_cast<std::size_t>(n_products), 0);
    models_.emplace_back(form, sides_[0].d, sides_[1].d, 2 * models_.size() + 1);
  }
  n_experts_ = 4 + static_cast<int>(sides_[0].levels.size() + sides_[1].levels.size()) + !sides_[0].indptr.empty() +
               !sides_[1].indptr.empty() + static_cast<int>(models_.size()) + rule_.extra;
  mixer_dim_ = n_experts_ + 1;
  odds_.reserve(static_cast<std::size_t>(n_experts_));
  inputs_.resize(static_cast<std::size_t>(mixer_dim_));
  chance_.resize(static_cast<std::size_t>(hedged()));
  f_.assign(static_cast<std::size_t>(pair_features_), 0);
  links_.assign(SharedIds::kFeatures, 0);
  s_.global.assign(2, 0);
  s_.log_weights.assign(static_cast<std::size_t>(hedged()), -std::log(hedged()));
  s_.mixers.assign(static_cast<std::size_t>(kMixers * kBuckets * mixer_stride()), 0);
  for (int k = 0; k < kMixers * kBuckets; ++k) {
    double* at = s_.mixers.data() + k * mixer_stride();
    const bool of_all = k < kBuckets;  // the others say what is added to it, 0 at first
    for (int e = 0; e < n_experts_ && of_all; ++e) at[e] = 1.0 / n_experts_;
    for (int e = 0; e < mixer_dim_; ++e)
      at[mixer_dim_ + e * mixer_dim_ + e] = of_all ? rule_.mixer_variance : rule_.correction_variance;
  }
  s_.next_refit = static_cast<double>(rule_.first_refit);
  int widest = 1;
  for (const auto& model : models_)
    widest = std::max({widest, model.row_dim(), model.col_dim(), model.global_dim()});
  s_.refit.resize(widest);
  features_ = TrialFeatures(pair_features_);
  for (const int side : {0, 1}) grow(side, {});
}

// Adds all vertices or, after std::bad_alloc, none; only spare memory may stay larger.
void PairPool::grow(int side, const PoolSide& more) {
  PoolSide& at = sides_[side];
  const Offset size = at.size + more.size, all = size + sides_[1 - side].size;
  const Offset before = more.size > 0 ? at.size : size;
  if (more.size > 0) {
    at.phi.resize(static_cast<std::size_t>(size * at.d));
    at.groups.resize(static_cast<std::size_t>(size) * at.levels.size());
    std::copy(more.phi.begin(), more.phi.end(), at.phi.begin() + before * at.d);
    std::copy(more.groups.begin(), more.groups.end(),
              at.groups.begin() + before * static_cast<Offset>(at.levels.size()));
  }
  (side == 0 ? s_.rows : s_.cols).resize(static_cast<std::size_t>(size * count_stride_[side]));
  shared_ids_.resize(side, size);
  lists_[side].resize(static_cast<std::size_t>(size));
  const Offset rows = side == 0 ? size : sides_[0].size, cols = side == 1 ? size : sides_[1].size;
  for (auto& model : models_) model.resize(model.rule().mirrored ? all : rows, model.rule().mirrored ? all : cols);
  at.size = size;
}

double PairPool::rate(const double* counts, double prior) const {
  const double smoothing = rule_.trials * rule_.smoothing;
  return (counts[1] + smoothing * prior) / (counts[0] + counts[1] + smoothing);
}

// Adds the log-odds of majorities: of all pairs, of the column, of the row, by groups; then votes of neighbours.
void PairPool::count_experts(Index i, Index j) {
  const double none[2] = {0, 0};
  const double* row = asked_[0] < 0 ? none : s_.rows.data() + asked_[0] * count_stride_[0];
  const double* col = asked_[1] < 0 ? none : s_.cols.data() + asked_[1] * count_stride_[1];
  const double all = rate(s_.global.data(), .5), of_row = rate(row, all), of_col = rate(col, all);
  for (const double p : {all, of_col, of_row}) odds_.push_back(odds_of(p));
  group_experts(0, i, j, all);
  group_experts(1, i, j, all);
  for (const int side : {0, 1})
    if (!sides_[side].indptr.empty())
      odds_.push_back(odds_of(vote(side, side == 0 ? i : j, side == 0 ? of_col : of_row)));
  const double n_row = (row[0] + row[1]) / rule_.trials, n_col = (col[0] + col[1]) / rule_.trials;
  bucket_ = 4 * bucket_of(n_row) + bucket_of(n_col);
  novelty_ = (n_row < 1 && row_id_ < 0) + 2 * (n_col < 1 && col_id_ < 0);  // shared ids are known from the other side
}

// Adds, for every group of the row, the majority of its labels at this column (side 0); or the other way round. Where
// there are none it is the majority of all: the column's own misleads where groups disagree.
void PairPool::group_experts(int side, Index i, Index j, double prior) {
  const PoolSide& at = sides_[side];
  const Index member = side == 0 ? i : j, place = asked_[1 - side];
  const double* counts =
      place < 0 ? nullptr : (side == 0 ? s_.cols : s_.rows).data() + place * count_stride_[1 - side] + 2;
  Offset first = 0;
  for (std::size_t g = 0; g < at.levels.size(); ++g) {
    const Index level = member < 0 ? -1 : at.groups[static_cast<std::size_t>(member) * at.levels.size() + g];
    odds_.push_back(odds_of(level < 0 || counts == nullptr ? prior : rate(counts + 2 * (first + level), prior)));
    first += at.levels[g];
  }
}

// P(y = 1) by the labels that neighbours of the row have at this column (side 0), or the other way round.
double PairPool::vote(int side, Index member, double prior) const {
  const PoolSide& at = sides_[side];
  double sums[2] = {0, 0};
  if (member >= 0 && member + 1 < static_cast<Index>(at.indptr.size())) {
    const Offset first = at.indptr[static_cast<std::size_t>(member)];
    const Offset end = std::min(at.indptr[static_cast<std::size_t>(member) + 1], first + kMostNeighbours);
    for (Offset k = first; k < end; ++k) {
      const Index other = at.near[static_cast<std::size_t>(k)];
      const auto cell = side == 0 ? cells_.of(other, asked_[1]) : cells_.of(asked_[0], other);
      sums[0] += at.weight[static_cast<std::size_t>(k)] * cell.negative;
      sums[1] += at.weight[static_cast<std::size_t>(k)] * cell.positive;
    }
  }
  return rate(sums, prior);
}

// f[1] to f[5] of vertices a and b: their edge, common neighbours in three measures, degrees.
static void graph_features(const PoolSide& at, std::size_t a, std::size_t b, double* f) {
  const Offset end_a = at.indptr[a + 1], end_b = at.indptr[b + 1];
  const double degree_a = static_cast<double>(end_a - at.indptr[a]),
               degree_b = static_cast<double>(end_b - at.indptr[b]);
  double edge = 0, common = 0, rare = 0;
  Offset p = at.indptr[a];
  for (Offset k = p; k < end_a; ++k) edge += at.near[static_cast<std::size_t>(k)] == static_cast<Index>(b);
  for (Offset q = at.indptr[b]; p < end_a && q < end_b;) {
    const Index u = at.near[static_cast<std::size_t>(p)], v = at.near[static_cast<std::size_t>(q)];
    if (u == v) {
      const auto w = static_cast<std::size_t>(u);
      common += 1;
      rare += 1 / std::log(2.0 + static_cast<double>(at.indptr[w + 1] - at.indptr[w]));
    }
    p += u <= v;
    q += v <= u;
  }
  f[1] = edge;
  f[2] = std::log1p(common);
  f[3] = std::log1p(rare);
  f[4] = 3 * common / std::sqrt(std::max(degree_a * degree_b, 1.0));
  f[5] = .5 * (std::log1p(degree_a) + std::log1p(degree_b)) - 2;
}

// f (pair_features_): a constant; where both sides are one graph also its features and products of the vertices'.
void PairPool::pair_features(Index i, Index j, double* f) const {
  std::fill(f, f + pair_features_, 0);
  f[0] = 1;
  if (!rule_.same || i < 0 || j < 0) return;
  const PoolSide &at = sides_[0], &to = sides_[1];
  const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
  if (std::max(a, b) + 1 < at.indptr.size()) graph_features(at, a, b, f);
  f[6] = i == j;
  const double *phi = at.phi.data() + a * static_cast<std::size_t>(at.d),
               *psi = to.phi.data() + b * static_cast<std::size_t>(to.d);
  double alike = 0;
  for (int k = 0; k < std::min(at.d, to.d); ++k) alike += phi[k] * psi[k];
  f[7] = 2 * alike;
  const double *of_a = at.compared.data() + a * static_cast<std::size_t>(at.wide),
               *of_b = at.compared.data() + b * static_cast<std::size_t>(at.wide);
  if ((std::max(a, b) + 1) * static_cast<std::size_t>(at.wide) <= at.compared.size())
    for (int k = 0; k < at.wide; ++k) f[8] += 4 * of_a[k] * of_b[k];
  for (int k = 0; k + 1 + kGraphFeatures < pair_features_; ++k) f[1 + kGraphFeatures + k] = 8 * phi[k] * psi[k];
}

// products_: (1, phi_i) times (1, psi_j), row by row; features of unknown vertices are 0.
void PairPool::fill_products(Index i, Index j) {
  if (products_.empty()) return;
  const int d = sides_[0].d, e = sides_[1].d;
  std::fill(products_.begin(), products_.end(), 0);
  double* row = products_.data();
  row[0] = 1;
  if (j >= 0) std::copy_n(sides_[1].phi.begin() + static_cast<Offset>(j) * e, e, row + 1);
  if (i < 0) return;
  const double* phi = sides_[0].phi.data() + static_cast<Offset>(i) * d;
  for (int k = 0; k < d; ++k)
    for (int l = 0; l <= e; ++l) row[(1 + k) * (1 + e) + l] = phi[k] * row[l];
}

PairKnown PairPool::known(const Bilinear& model, Index i, Index j) const {
  const bool features = model.rule().features;
  if (model.rule().mirrored) return {row_id_, col_id_, nullptr, nullptr, f_of(model)};
  if (model.rule().products) return {i, j, nullptr, nullptr, f_of(model)};  // of a pair that counts as unseen, too
  return {asked_[0], asked_[1],
          features && i >= 0 ? sides_[0].phi.data() + static_cast<Offset>(i) * sides_[0].d : nullptr,
          features && j >= 0 ? sides_[1].phi.data() + static_cast<Offset>(j) * sides_[1].d : nullptr, f_of(model)};
}

// odds_: the log-odds of every expert for a pair. asked_: its row and column, -1 where they count as never seen.
void PairPool::gather(Index i, Index j, const double* extra) {
  odds_.clear();
  fill_products(i, j);
  count_experts(i, j);
  const std::size_t biases = odds_.size();
  for (auto& model : models_) {
    const bool known_already = products_known_ && model.rule().products;  // they hang on no count
    odds_.push_back(known_already ? product_odds_ : model.odds(known(model, i, j)));
    if (model.rule().products) product_odds_ = odds_.back();
    const bool by_shared = model.rule().mirrored || model.rule().linked;
    if (by_shared && (row_id_ < 0 || col_id_ < 0)) odds_.back() = odds_[biases];  // nothing is known of it
  }
  products_known_ = false;
  const auto cell = cells_.of(asked_[0], asked_[1]);
  const double counts[2] = {static_cast<double>(cell.negative), static_cast<double>(cell.positive)};
  odds_.push_back(odds_of(rate(counts, sigmoid(odds_.back()))));
  for (int e = 0; e < rule_.extra; ++e) odds_.push_back(extra == nullptr ? std::nan("") : extra[e]);
  for (double& odds : odds_) odds = std::clamp(odds, -kFarthest, kFarthest);  // NaN stays
  for (std::size_t e = 0; e < odds_.size(); ++e) inputs_[e] = std::isnan(odds_[e]) ? 0 : odds_[e];
  inputs_.back() = .3;
}

// Predicts a pair: the log-odds of every expert, of the mixers, and P(y = 1) of the hedge.
void PairPool::ask(Index i, Index j, const double* extra, Mirrored mirrored) {
  asked_[0] = i;
  asked_[1] = j;
  pair_features(i, j, f_.data());
  if (rule_.shared_ids) {
    row_id_ = shared_ids_.of(0, i) >= 0 ? shared_ids_.of(0, i) : shared_ids_.of(1, mirrored.row);
    col_id_ = shared_ids_.of(1, j) >= 0 ? shared_ids_.of(1, j) : shared_ids_.of(0, mirrored.col);
    shared_ids_.features(row_id_, col_id_, links_.data());
  }
  gather(i, j, extra);
  mix();
}

// New rows and columns are few, so their mixers also learn from pairs of known ones: of four pairs in turn the row, the
// column or both count as never seen.
void PairPool::learn_as_unseen(Index i, Index j, double y) {
  const auto hidden = static_cast<int>(s_.seen.size() % 4);  // 1: the row, 2: the column, 3: both, 0: none
  const auto unseen = [&](int side, Index v) {
    const double* counts = (side == 0 ? s_.rows : s_.cols).data() + v * count_stride_[side];
    return counts[0] + counts[1] < 1;
  };
  if (hidden == 0 || unseen(0, i) || unseen(1, j)) return;
  asked_[0] = hidden & 1 ? -1 : i;
  asked_[1] = hidden & 2 ? -1 : j;
  pair_features(i, j, f_.data());
  if (rule_.shared_ids) {
    row_id_ = hidden & 1 ? -1 : shared_ids_.of(0, i);
    col_id_ = hidden & 2 ? -1 : shared_ids_.of(1, j);
    shared_ids_.features(row_id_, col_id_, links_.data());
  }
  gather(i, j, nullptr);
  products_known_ = true;
  weigh(0, mixer(0, novelty_));
  learn_mixer(0, y);
}

// mixed_[k], spread_[k], gain_[k] of mixer k with coefficients `mean`; the second adds to the log-odds of the first.
void PairPool::weigh(int k, const double* mean) {
  const int d = mixer_dim_;
  double z = k == 0 ? 0 : mixed_[0];
  gain_[k].assign(static_cast<std::size_t>(d), 0);
  double* gain = gain_[k].data();
  for (int b = 0; b < d; ++b) {  // P is symmetric: by its rows, whose sums do not wait for each other
    const double x = inputs_[static_cast<std::size_t>(b)], *row = mean + d + b * d;
    for (int a = 0; a < d; ++a) gain[a] += row[a] * x;
  }
  double variance = 0;
  for (int a = 0; a < d; ++a) {
    z += mean[a] * inputs_[static_cast<std::size_t>(a)];
    variance += gain[a] * inputs_[static_cast<std::size_t>(a)];
  }
  mixed_[k] = z;
  spread_[k] = variance;
}

void PairPool::mix() {
  double top = -1e300, sum = 0, weight = 0;
  for (std::size_t e = 0; e < odds_.size(); ++e) chance_[e] = sigmoid(odds_[e]);
  weigh(0, mixer(0, novelty_));
  weigh(1, mixer(1, bucket_));
  for (int k = 0; k < kMixers; ++k)
    chance_[static_cast<std::size_t>(n_experts_ + k)] =
        sigmoid(std::clamp(mixed_[k] / std::sqrt(1 + kPi8 * spread_[k]), -kFarthest, kFarthest));
  for (const double w : s_.log_weights) top = std::max(top, w);
  for (int e = 0; e < hedged(); ++e) {
    const auto at = static_cast<std::size_t>(e);
    if (std::isnan(chance_[at])) continue;  // asleep: it predicts what the others do
    const double w = std::exp(s_.log_weights[at] - top);
    weight += w;
    sum += w * chance_[at];
  }
  mixture_ = sum / weight;
}

double PairPool::probability(Index i, Index j, const double* extra, Mirrored mirrored) {
  ask(i, j, extra, mirrored);
  return mixture_;
}

void PairPool::learn_mixer(int k, double y) {
  const int d = mixer_dim_;
  double* mean = mixer(k, k == 0 ? novelty_ : bucket_);
  const auto [slope, curvature] = logistic_step(mixed_[k], spread_[k], y, rule_.trials);
  const double* gain = gain_[k].data();
  for (int a = 0; a < d; ++a) {
    const double scaled = curvature * gain[a];
    mean[a] += slope * gain[a];
    for (int b = 0; b < d; ++b) mean[d + a * d + b] -= scaled * gain[b];
  }
}

// Fixed share with rate 1 / (t + 1): Bayes' rule, then that much of every weight goes to the others.
void PairPool::learn_hedge(double y) {
  const auto E = static_cast<double>(hedged());
  const double share = 1 / (static_cast<double>(s_.seen.size()) + 2);
  const double positive = .5 * (rule_.trials + y), negative = .5 * (rule_.trials - y);
  double top = -1e300, sum = 0;
  for (std::size_t e = 0; e < chance_.size(); ++e) {
    const double p = std::isnan(chance_[e]) ? mixture_ : chance_[e];
    if (positive > 0) s_.log_weights[e] += positive * std::log(p);
    if (negative > 0) s_.log_weights[e] += negative * std::log(1 - p);
    top = std::max(top, s_.log_weights[e]);
  }
  for (double& w : s_.log_weights) sum += std::exp(w - top);
  for (double& w : s_.log_weights) {
    const double own = std::exp(w - top) / sum;
    w = std::log(own * (1 - share) + (1 - own) * share / (E - 1));
  }
}

void PairPool::learn_counts(Index i, Index j, double y) {
  const double labels[2] = {.5 * (rule_.trials - y), .5 * (rule_.trials + y)};
  double* row = s_.rows.data() + i * count_stride_[0];
  double* col = s_.cols.data() + j * count_stride_[1];
  const auto add = [&](double* counts) {
    for (const int label : {0, 1}) counts[label] += labels[label];
  };
  add(s_.global.data());
  add(row);
  add(col);
  for (const int side : {0, 1}) {
    const PoolSide& at = sides_[side];
    double* counts = side == 0 ? col : row;
    const Index member = side == 0 ? i : j;
    Offset first = 1;
    for (std::size_t g = 0; g < at.levels.size(); ++g) {
      const Index level = at.groups[static_cast<std::size_t>(member) * at.levels.size() + g];
      if (level >= 0) add(counts + 2 * (first + level));
      first += at.levels[g];
    }
  }
}

// Lets the models of shared ids learn the pair in both directions, and links its numbers.
void PairPool::learn_shared(Index i, Index j, double y) {
  if (!rule_.shared_ids) return;
  row_id_ = shared_ids_.number(0, i);
  col_id_ = shared_ids_.number(1, j);
  for (auto& model : models_) {
    if (!model.rule().mirrored) continue;
    model.odds(known(model, i, j));
    model.learn(y);
    if (row_id_ == col_id_) continue;
    model.odds(mirrored(model));
    model.learn(y);
  }
  shared_ids_.link(row_id_, col_id_, y);
}

void PairPool::count_cell(CellCounts& cells, Index i, Index j, double y) const {
  cells.add(i, j, static_cast<int>(rule_.trials - y) / 2, static_cast<int>(rule_.trials + y) / 2);
}

void PairPool::learn(Index i, Index j, double y) {
  learn_hedge(y);
  for (int k = 0; k < kMixers; ++k) learn_mixer(k, y);
  for (auto& model : models_)
    if (!model.rule().mirrored) model.learn(y);
  learn_counts(i, j, y);
  learn_shared(i, j, y);
  count_cell(cells_, i, j, y);
  list(s_.seen.size(), i, j, y);
  features_.push(f_.data());
  s_.seen.i.push_back(i);
  s_.seen.j.push_back(j);
  s_.seen.y.push_back(static_cast<std::int8_t>(y));
  refit();
}

// Adds a trial to the lists of its vertices.
void PairPool::list(Offset trial, Index i, Index j, double y) {
  const auto label = static_cast<std::int8_t>(y);
  lists_[0][static_cast<std::size_t>(i)].push_back({trial, j, label});
  lists_[1][static_cast<std::size_t>(j)].push_back({trial, i, label});
  if (!rule_.shared_ids) return;
  const Index a = shared_ids_.of(0, i), b = shared_ids_.of(1, j);
  shared_lists_.resize(std::max(shared_lists_.size(), static_cast<std::size_t>(shared_ids_.size())));
  shared_lists_[static_cast<std::size_t>(a)].push_back({trial, b, label});
  shared_lists_[static_cast<std::size_t>(b)].push_back({trial, a, label});
}

// The trials that a model learned from; a mirrored one learned each in both directions.
PairHistory PairPool::history_of(const Bilinear& model) const {
  if (!model.rule().mirrored) return s_.seen;
  PairHistory both;
  for (std::size_t t = 0; t < s_.seen.y.size(); ++t) {
    const Index a = shared_ids_.of(0, s_.seen.i[t]), b = shared_ids_.of(1, s_.seen.j[t]);
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      both.i.push_back(from);
      both.j.push_back(to);
      both.y.push_back(s_.seen.y[t]);
    }
  }
  return both;
}

RefitSource PairPool::source_of(const Bilinear& model) const {
  const bool mirrored = model.rule().mirrored;
  return {{mirrored ? &shared_lists_ : &lists_[0], mirrored ? &shared_lists_ : &lists_[1]},
          sides_[0].phi.data(),
          sides_[1].phi.data(),
          &features_};
}

// A refit spreads its work evenly over the next `refit_share` of the stream: no trial waits for all of it, and what
// is done at a trial hangs on nothing but the trials before.
void PairPool::begin_refit() {
  s_.next_refit = std::ceil(s_.next_refit * rule_.refit_growth);
  s_.path.push_back(static_cast<double>(s_.seen.size()));
  for (const double w : s_.log_weights) s_.path.push_back(std::exp(w));
  double work = 0;
  for (const auto& model : models_)
    if (model.rule().refit) work += model.refit_work((1 + model.rule().mirrored) * s_.seen.size());
  s_.refit.credit = 0;
  s_.refit.quota = work / std::max(1.0, std::ceil(rule_.refit_share * static_cast<double>(s_.seen.size())));
  next_model(0);
}

void PairPool::next_model(Offset first) {
  RefitState& at = s_.refit;
  const auto count = static_cast<Offset>(models_.size());
  while (first < count && !models_[static_cast<std::size_t>(first)].rule().refit) ++first;
  at.model = first < count ? first : -1;
  at.sweep = at.part = at.vertex = at.entry = 0;
}

// Does the part of a refit that is due at this trial.
void PairPool::refit() {
  RefitState& at = s_.refit;
  if (at.model < 0 && static_cast<double>(s_.seen.size()) >= s_.next_refit) begin_refit();
  if (at.model < 0) return;
  at.credit += at.quota;
  while (at.model >= 0 && at.credit > 0) {
    Bilinear& model = models_[static_cast<std::size_t>(at.model)];
    at.credit -= model.refit(source_of(model), at.credit, at);
    if (at.sweep == model.rule().sweeps) next_model(at.model + 1);
  }
}

bool PairPool::stands(const RefitState& at) const {
  if (at.model == -1) return true;
  if (at.model < 0 || at.model >= static_cast<Offset>(models_.size())) return false;
  const Bilinear& model = models_[static_cast<std::size_t>(at.model)];
  return model.rule().refit && model.stands(source_of(model), at);
}

void PairPool::run(Offset n, const Index* i, const Index* j, const double* y, const double* extra, double* out,
                   double* chances) {
  for (Offset t = 0; t < n; ++t) {
    learn_as_unseen(i[t], j[t], y[t]);
    ask(i[t], j[t], extra + t * rule_.extra, {});
    out[t] = mixture_;
    if (chances != nullptr) std::copy(chance_.begin(), chance_.end(), chances + t * hedged());
    learn(i[t], j[t], y[t]);
  }
}

void PairPool::remember(PairHistory seen) {
  CellCounts cells;
  for (std::size_t t = 0; t < seen.y.size(); ++t) count_cell(cells, seen.i[t], seen.j[t], seen.y[t]);
  s_.seen = std::move(seen);
  cells_ = std::move(cells);
  relink();
}

// Makes numbers, links, lists, features and the order of vertices anew from the history.
void PairPool::relink() {
  shared_ids_.clear();
  features_.clear();
  for (auto* lists : {&lists_[0], &lists_[1], &shared_lists_})
    for (auto& seen : *lists) seen.clear();
  const PairHistory& seen = s_.seen;
  for (Offset t = 0; t < seen.size(); ++t) {
    const auto trial = static_cast<std::size_t>(t);
    const Index i = seen.i[trial], j = seen.j[trial];
    if (rule_.shared_ids) {
      const Index a = shared_ids_.number(0, i), b = shared_ids_.number(1, j);
      shared_ids_.link(a, b, seen.y[trial]);
    }
    list(t, i, j, seen.y[trial]);
    if (pair_features_ > 1) pair_features(i, j, f_.data());
    features_.push(f_.data());
  }
  for (auto& model : models_) model.follow(history_of(model));
}

std::vector<double> PairPool::weights() const {
  std::vector<double> weights;
  for (const double w : s_.log_weights) weights.push_back(std::exp(w));
  return weights;
}

}  // namespace lacunar
