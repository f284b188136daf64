#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "lacunar/kernels.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "lacunar/rls/cell_screen.hpp"
#include "lacunar/rls/lazy_basis.hpp"
#include "lacunar/rls/row_code.hpp"
#include "lacunar/rls/scout.hpp"
#include "lacunar/rls/small_dense.hpp"
#include "lacunar/rls/trackers.hpp"

namespace lacunar {
namespace {

constexpr Offset kEvery = 4;           // steps between two looks at the noise
constexpr Offset kScaleEvery = 1024;   // steps between two normalisations of V, more on wide tables
constexpr double kEnough = 8;          // looks before the sums set the ridge
constexpr double kLargestRidge = 100;  // in units of a Gram's mean diagonal

// matrix (d, d) <- by matrix by, and line (d) <- by line, for symmetric `by` (leading, leading).
void sandwich(const std::vector<double>& by, double* matrix, int d, int leading) {
  std::vector<double> padded_in(by.size()), half(by.size()), out(by.size());
  for (int i = 0; i < d; ++i) std::copy_n(matrix + i * d, d, padded_in.begin() + i * leading);
  kernels().small.multiply(by.data(), padded_in.data(), leading, leading, half.data());
  kernels().small.multiply(half.data(), by.data(), leading, leading, out.data());
  for (int i = 0; i < d; ++i)
    for (int k = 0; k < d; ++k)
      matrix[i * d + k] =
          (out[static_cast<std::size_t>(i * leading + k)] + out[static_cast<std::size_t>(k * leading + i)]) / 2;
}

void apply_square(const std::vector<double>& by, double* line, int d, int leading) {
  std::vector<double> out(static_cast<std::size_t>(d));
  for (int i = 0; i < d; ++i) out[static_cast<std::size_t>(i)] = dot(by.data() + i * leading, line, d);
  std::copy(out.begin(), out.end(), line);
}

template <class T>
class Shared {
 public:
  Shared(const Rows<T>& rows, const double* label, const SharedRule& rule, const SharedState& state, Offset largest)
      : rows_(rows),
        label_(label),
        rule_(rule),
        s_(state),
        d_(state.d),
        row_(state.d, largest),
        memories_(state.memories, state.n_cols, state.d, largest),
        screen_(state.screen, state.d, largest),
        scout_(state.scout, state.n_cols, state.d, rule.ridge, largest) {
    const auto side = static_cast<std::size_t>(row_.leading);
    for (auto* line : {&code_, &label_code_, &gain_, &w_}) line->resize(side);
    fitted_.resize(row_.x.size());
    std::copy_n(s_.w, d_, w_.begin());
  }

  ~Shared() { std::copy_n(w_.begin(), d_, s_.w); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  bool step(Offset row, const RlsTrace& trace);

 private:
  void remember(double discount, double label);
  void normalise();
  void adopt_scout();
  void move_columns(const Index* seen, double discount, double tau);

  const Rows<T>& rows_;
  const double* label_;
  const SharedRule& rule_;
  const SharedState& s_;
  int d_;
  RowCode row_;
  Memories memories_;
  CellScreen screen_;
  Scout scout_;
  double ridge_ = 0, left_ = 0;
  std::vector<double> code_, label_code_, gain_, w_, fitted_;
};

// The running sums, discounted at every step; noise and freedom are looked at every few.
template <class T>
void Shared<T>::remember(double discount, double label) {
  for (int k = 0; k < kSharedSum; ++k) s_.sums[k] *= k == kLabelled ? 1.0 : discount;  // that one by remember_label
  s_.sums[kTotal] += 1;
  if (static_cast<Offset>(s_.clock[kSteps]) % kEvery == 0) {
    s_.sums[kLooks] += 1;
    s_.sums[kLeft] += left_;
    s_.sums[kFreedom] += row_.m - d_ + ridge_ * row_.inverse_trace();
    s_.sums[kSize] += row_.size;
    s_.sums[kEntries] += row_.m;
    s_.sums[kGramTrace] += row_.gram_trace();
  }
  remember_label({s_.codes, s_.labelled, s_.sums + kLabelled}, d_, discount, label, code_.data());
}

// V_j += e_j s_j / (1 + s_j tau) gain with s_j = c / c_j: the shared R scaled to how often this column was seen.
template <class T>
void Shared<T>::move_columns(const Index* seen, double discount, double tau) {
  const double now = s_.clock[kLogDiscount], total = s_.sums[kTotal] + 1;
  for (int i = 0; i < row_.m; ++i) {
    const Index j = seen[i];
    const double before = s_.count[j] * std::exp(now - s_.discount[j]);
    const double share = total / (before / discount + 1);
    const double f = row_.x[static_cast<std::size_t>(i)] * share / (1 + share * tau);
    add_scaled(row_.rows.data() + static_cast<Offset>(i) * row_.leading, f, gain_.data(), d_,
               s_.v + static_cast<Offset>(j) * d_);
    s_.count[j] = before + 1;
    s_.discount[j] = now;
  }
}

// V <- V S with S = (V^T V)^(-1/2), and everything in its coordinates with it: ridge and step leave the scale of V
// free, and it would drift. Codes turn by S^-1 = V^T V S.
template <class T>
void Shared<T>::normalise() {
  const int ld = row_.leading;
  const std::size_t square = static_cast<std::size_t>(ld * ld);
  std::vector<double> gram(square), root(square), back(square), work(3 * square);
  columns_gram(s_.v, s_.n_cols, d_, ld, gram);
  double trace = 0;
  for (int i = 0; i < d_; ++i) trace += gram[static_cast<std::size_t>(i * ld + i)];
  std::vector<double> delta(gram);
  for (int i = 0; i < d_; ++i) delta[static_cast<std::size_t>(i * ld + i)] -= 1;
  if (!(trace > 0) || !inverse_root(delta.data(), d_, ld, root.data(), work.data())) return;
  kernels().small.multiply(gram.data(), root.data(), ld, ld, back.data());
  turn_columns(s_.v, s_.n_cols, d_, ld, root);
  sandwich(root, s_.inverse, d_, ld);
  memories_.turn(root, ld);
  s_.sums[kGramTrace] *= d_ / trace;
  sandwich(back, s_.codes, d_, ld);
  apply_square(back, s_.labelled, d_, ld);
  apply_square(root, w_.data(), d_, ld);
}

// The scout's basis and correlation in place of the tracker's.
template <class T>
void Shared<T>::adopt_scout() {
  std::copy_n(scout_.v(), s_.n_cols * d_, s_.v);
  std::copy_n(scout_.inverse(), d_ * d_, s_.inverse);
  for (Offset j = 0; j < s_.n_cols; ++j) s_.count[j] = scout_.seen(j);
  std::fill_n(s_.discount, s_.n_cols, s_.clock[kLogDiscount]);
  s_.sums[kTotal] = scout_.rows();
  memories_.start_from(s_.v, scout_.rows_kept());
}

template <class T>
bool Shared<T>::step(Offset row, const RlsTrace& trace) {
  const Offset first = rows_.offsets[row];
  const int m = static_cast<int>(rows_.offsets[row + 1] - first);
  const double label = label_ == nullptr ? std::numeric_limits<double>::quiet_NaN() : label_[row];
  double prediction = 0, relative = 0;
  if (m > 0) {
    const Index* seen = rows_.indices + first;
    gather_rows(s_.v, d_, seen, m, row_.leading, row_.rows.data());
    row_.load(rows_.values + first, m);
    ridge_ = rule_.automatic ? ridge_of(s_.sums, d_, rule_.ridge) : rule_.ridge;
    bool factored = row_.factorise(ridge_, nullptr, kSingular);
    if (const Index* clean = factored ? screen_.clean(row_, seen) : seen; clean != seen) {
      seen = clean;
      factored = row_.factorise(ridge_, nullptr, kSingular);
    }
    if (!factored) row_.rescue(ridge_);
    row_.solve(row_.right, code_);
    prediction = dot(w_.data(), code_.data(), d_);
    left_ = row_.left(code_);
    relative = row_.size > 0 ? left_ / row_.size : 0.0;
    label_code_ = code_;
    if (!std::isnan(label) && std::isfinite(rule_.lam1)) {
      row_.solve(w_, gain_);
      const double c = (label - prediction) / (rule_.lam1 + dot(w_.data(), gain_.data(), d_));
      for (std::size_t k = 0; k < code_.size(); ++k) label_code_[k] += c * gain_[k];
    }
    kernels().small.project(row_.rows.data(), label_code_.data(), row_.m, row_.leading, fitted_.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(row_.m); ++i) row_.x[i] -= fitted_[i];
    if (!std::isfinite(dot(row_.x.data(), row_.x.data(), row_.m)) || !std::isfinite(row_.size)) return false;
    const double discount = rule_.forgetting.kind == Forgetting::Kind::adaptive
                                ? memories_.keep(row_, seen, code_, label_code_, relative, factored)
                                : keep_of(rule_.forgetting, s_.clock);
    s_.clock[kSteps] += 1;
    s_.clock[kSingularRows] += factored ? 0 : 1;
    s_.clock[kLogDiscount] += std::log(discount);
    move_columns(seen, discount, advance_inverse(s_.inverse, d_, label_code_.data(), discount, gain_.data()));
    remember(discount, label);
    if (scout_.exists()) {
      scout_.learn(row_, seen, memories_.places());
      if (scout_.better(memories_.hidden_error())) adopt_scout();
    }
    if (static_cast<Offset>(s_.clock[kSteps]) % std::max(kScaleEvery, s_.n_cols / 16) == 0) normalise();
  }
  if (trace.prediction != nullptr) trace.prediction[row] = prediction;
  if (trace.residual != nullptr) trace.residual[row] = relative;
  return true;
}

}  // namespace

double ridge_of(const double* sums, int d, double otherwise) {
  if (sums[kLooks] < kEnough || sums[kFreedom] <= 0 || sums[kGramTrace] <= 0) return otherwise;
  const double noise = sums[kLeft] / sums[kFreedom];
  const double signal = (sums[kSize] - sums[kEntries] * noise) / sums[kGramTrace];
  const double mean = sums[kGramTrace] / (d * sums[kLooks]);  // of a Gram's diagonal: the ridge's own scale
  return signal > 0 ? std::min(noise / signal, kLargestRidge * mean) : kLargestRidge * mean;
}

template <class T>
Offset shared_pass(const Rows<T>& rows, const Offset* order, Offset n_order, const double* label,
                   const SharedRule& rule, const SharedState& state, const RlsTrace& trace) {
  assert(well_ordered(rows));
  Shared<T> pass(rows, label, rule, state, longest_row(rows, order, n_order));
  InterruptCheck check;
  for (Offset k = 0; k < n_order; ++k, check.after(operations_of(rows, order[k - 1], state.d)))
    if (!pass.step(order[k], trace)) return k;
  return -1;
}

template Offset shared_pass<float>(const Rows<float>&, const Offset*, Offset, const double*, const SharedRule&,
                                   const SharedState&, const RlsTrace&);
template Offset shared_pass<double>(const Rows<double>&, const Offset*, Offset, const double*, const SharedRule&,
                                    const SharedState&, const RlsTrace&);

}  // namespace lacunar
