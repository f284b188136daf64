#include "lacunar/rls/rls.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "lacunar/parallel/prefetch.hpp"
#include "lacunar/rls/cell_screen.hpp"
#include "lacunar/rls/lazy_basis.hpp"
#include "lacunar/rls/row_code.hpp"
#include "lacunar/rls/scout.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

constexpr int kAhead = 2;  // inverse correlations prefetched ahead

// The inverse correlation of a column as blocks: in place for doubles, unpacked and packed again for floats.
double* unpack(double* stored, int, std::vector<double>&) { return stored; }
void pack(double*, int, const std::vector<double>&) {}
double* unpack(float* stored, int d, std::vector<double>& unpacked) {
  kernels().small.unpack(stored, d, unpacked.data());
  return unpacked.data();
}
void pack(float* stored, int d, const std::vector<double>& unpacked) {
  kernels().small.pack(unpacked.data(), d, stored);
}

double largest_diagonal(const double* blocks, int d) {
  double largest = 0;
  for (int i = 0; i < d; ++i) {
    largest = std::max(largest, blocks[i]);
    blocks += i / 8 * 8 + 8;
  }
  return largest;
}

template <class P, class T>
class Pass {
 public:
  Pass(const Rows<T>& rows, const double* label, const RlsRule& rule, const RlsState<P>& state, Offset largest)
      : rows_(rows),
        label_(label),
        rule_(rule),
        s_(state),
        d_(state.d),
        row_(state.d, largest),
        basis_(state.v, state.n_cols, state.d, state.t, state.t_inverse),
        memories_(state.memories, state.n_cols, state.d, largest),
        screen_(state.screen, state.d, largest),
        scout_(state.scout, state.n_cols, state.d, rule.ridge, largest) {
    const auto side = static_cast<std::size_t>(row_.leading);
    for (auto* line : {&code_, &label_code_, &inner_, &gain_, &w_}) line->resize(side);
    for (auto* tall : {&next_, &change_}) tall->resize(row_.rows.size());
    t_gram_.resize(side * side);
    unpacked_.resize(static_cast<std::size_t>(rls_stride<double>(d_)));
    std::copy(s_.w, s_.w + d_, w_.begin());
  }

  ~Pass() { std::copy(w_.begin(), w_.begin() + d_, s_.w); }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // False when the row was left out because its step is not finite.
  bool step(Offset row, const RlsTrace& trace);

 private:
  template <class V>
  bool load(const Index* seen, const V* values, int m);
  bool factorise();
  void adopt_scout();
  void solve_codes(double label, double* prediction);
  void shortest_codes(double label, double* prediction);
  bool residuals();
  void update_columns();
  void move_weights(double label);

  const Rows<T>& rows_;
  const double* label_;
  const RlsRule& rule_;
  const RlsState<P>& s_;
  int d_;
  RowCode row_;
  LazyBasis basis_;
  Memories memories_;
  CellScreen screen_;
  Scout scout_;
  const Index* seen_ = nullptr;
  int singular_ = 0;                                          // whether the row's codes are the shortest of many
  std::vector<double> code_, label_code_, inner_, gain_, w_;  // (leading)
  std::vector<double> next_, change_, t_gram_, unpacked_;
};

// The row's normal equations in V; the ridge is on codes in U's coordinates. False when they have no factor to trust.
template <class P, class T>
template <class V>
bool Pass<P, T>::load(const Index* seen, const V* values, int m) {
  seen_ = seen;
  basis_.gather(seen_, m, row_.rows.data());
  row_.load(values, m);
  if (!factorise()) return false;
  seen_ = screen_.clean(row_, seen_);
  return seen_ == seen || factorise();
}

template <class P, class T>
bool Pass<P, T>::factorise() {
  const double ridge = rule_.automatic ? memories_.ridge(row_, rule_.ridge) : rule_.ridge;
  const double* inner = nullptr;
  if (ridge > 0 && rule_.orthonormal) {
    kernels().small.gram(basis_.t_inverse().data(), d_, row_.leading, t_gram_.data());
    inner = t_gram_.data();
  }
  return row_.factorise(ridge, inner, ridge > 0 ? kSingular : kExact);
}

// code: a0, label_code: a0 + c g of step 5, in V's coordinates; the prediction w a0.
template <class P, class T>
void Pass<P, T>::solve_codes(double label, double* prediction) {
  row_.solve(row_.right, code_);
  if (rule_.orthonormal)
    basis_.to_v(w_.data(), inner_.data());
  else
    inner_ = w_;
  *prediction = dot(inner_.data(), code_.data(), d_);
  label_code_ = code_;
  if (!std::isnan(label) && std::isfinite(rule_.lam1)) {
    row_.solve(inner_, gain_);
    const double c = (label - *prediction) / (rule_.lam1 + dot(inner_.data(), gain_.data(), d_));
    for (std::size_t k = 0; k < code_.size(); ++k) label_code_[k] += c * gain_[k];
  }
}

// The same for a row with fewer entries than directions, or nearly so: of all codes that step 5 allows the shortest in
// U's coordinates, which no choice of V and T changes.
template <class P, class T>
void Pass<P, T>::shortest_codes(double label, double* prediction) {
  const double* t = rule_.orthonormal ? basis_.t().data() : nullptr;
  const auto turned = [&](std::vector<double>& code) {
    if (rule_.orthonormal)
      basis_.from_u(inner_.data(), code.data());
    else
      code = inner_;
  };
  singular_ = row_.shortest(t, nullptr, 0, inner_) < d_ ? 1 : 0;
  *prediction = dot(w_.data(), inner_.data(), d_);
  turned(code_);
  label_code_ = code_;
  if (std::isnan(label) || !std::isfinite(rule_.lam1)) return;
  const double weight = 1 / std::sqrt(rule_.lam1);
  for (std::size_t k = 0; k < gain_.size(); ++k) gain_[k] = weight * w_[k];
  row_.shortest(t, gain_.data(), weight * label, inner_);
  turned(label_code_);
}

// The row's x becomes x - V_O label_code; false when that is not finite.
template <class P, class T>
bool Pass<P, T>::residuals() {
  kernels().small.project(row_.rows.data(), label_code_.data(), row_.m, row_.leading, next_.data());
  const auto m = static_cast<std::size_t>(row_.m);
  for (std::size_t i = 0; i < m; ++i) row_.x[i] -= next_[i];
  return std::isfinite(dot(row_.x.data(), row_.x.data(), row_.m));
}

// Algorithm 2 on the observed columns: next (m, leading) = V_O + e_j R_j a T^-1, written back to V.
template <class P, class T>
void Pass<P, T>::update_columns() {
  const int ld = row_.leading;
  const double now = s_.clock[kLogDiscount];
  const double* a = rule_.orthonormal ? inner_.data() : label_code_.data();
  const Offset stride = rls_stride<P>(d_);
  const auto stored_at = [&](int i) { return s_.pool + static_cast<Offset>(s_.slot[seen_[i]]) * stride; };
  for (int i = 0; i < row_.m; ++i) {
    if (i + kAhead < row_.m) prefetch<For::writing>(stored_at(i + kAhead), 0, stride);
    const Index j = seen_[i];
    P* stored = stored_at(i);
    double* blocks = unpack(stored, d_, unpacked_);
    double grow = std::exp(s_.discount[j] - now);
    if (grow > 1) grow = std::max(1.0, std::min(grow, rule_.cap * rule_.delta / largest_diagonal(blocks, d_)));
    s_.discount[j] = now;
    kernels().small.rls_update(blocks, d_, a, grow, gain_.data());
    pack(stored, d_, unpacked_);
    double* change = change_.data() + static_cast<Offset>(i) * ld;
    const double e = row_.x[static_cast<std::size_t>(i)];
    for (int k = 0; k < ld; ++k) change[k] = e * gain_[static_cast<std::size_t>(k)];
  }
  const double* change = change_.data();
  if (rule_.orthonormal) {
    kernels().small.multiply(change, basis_.t_inverse().data(), row_.m, ld, next_.data());
    change = next_.data();
  }
  const auto size = static_cast<std::size_t>(row_.m) * static_cast<std::size_t>(ld);
  for (std::size_t k = 0; k < size; ++k) next_[k] = row_.rows[k] + change[k];
  basis_.scatter(seen_, row_.m, next_.data());
}

// Step 8, with the code of step 5 (in U's coordinates of before step 7, as printed).
template <class P, class T>
void Pass<P, T>::move_weights(double label) {
  if (std::isnan(label) || rule_.rho == 0) return;
  const double t = s_.clock[kSteps], until = static_cast<double>(rule_.constant_until);
  const double eta = t <= until ? rule_.rho : rule_.rho * (rule_.continuous ? until : 1.0) / t;
  const double* a = rule_.orthonormal ? inner_.data() : label_code_.data();
  const double error = dot(a, w_.data(), d_) - label;
  for (int k = 0; k < d_; ++k) {
    double& w = w_[static_cast<std::size_t>(k)];
    w -= eta * (2 * error * a[k] + rule_.lam3 * w);
    w = std::copysign(std::max(std::abs(w) - eta * rule_.lam2, 0.0), w);
  }
}

// The scout's basis and correlations in place of the tracker's.
template <class P, class T>
void Pass<P, T>::adopt_scout() {
  std::copy_n(scout_.v(), s_.n_cols * d_, s_.v);
  for (Offset j = 0; j < s_.n_cols; ++j) {
    if (s_.slot[j] < 0) continue;
    P* stored = s_.pool + s_.slot[j] * rls_stride<P>(d_);
    scout_.column_inverse(j, unpack(stored, d_, unpacked_));
    pack(stored, d_, unpacked_);
    s_.discount[j] = s_.clock[kLogDiscount];
  }
  memories_.start_from(s_.v, scout_.rows_kept());
}

template <class P, class T>
bool Pass<P, T>::step(Offset row, const RlsTrace& trace) {
  const double label = label_ == nullptr ? std::numeric_limits<double>::quiet_NaN() : label_[row];
  double prediction = 0, relative = 0;
  if (rows_.offsets[row + 1] > rows_.offsets[row]) {
    const Offset first = rows_.offsets[row];
    const bool factored =
        load(rows_.indices + first, rows_.values + first, static_cast<int>(rows_.offsets[row + 1] - first));
    singular_ = 0;
    if (factored)
      solve_codes(label, &prediction);
    else
      shortest_codes(label, &prediction);
    relative = row_.size > 0 ? row_.left(code_) / row_.size : 0.0;
    if (!residuals() || !std::isfinite(relative) || !std::isfinite(prediction)) return false;
    if (rule_.orthonormal) basis_.to_u(label_code_.data(), inner_.data());
    s_.clock[kSteps] += 1;
    s_.clock[kSingularRows] += singular_;
    const double discount = rule_.forgetting.kind == Forgetting::Kind::adaptive
                                ? memories_.keep(row_, seen_, code_, label_code_, relative, factored)
                                : keep_of(rule_.forgetting, s_.clock);
    s_.clock[kLogDiscount] += std::log(discount);
    if (s_.codes != nullptr) remember_label({s_.codes, s_.labelled, s_.labels}, d_, discount, label, code_.data());
    if (scout_.exists()) scout_.learn(row_, seen_, memories_.places());
    update_columns();
    if (scout_.exists() && scout_.better(memories_.hidden_error())) adopt_scout();
    if (rule_.orthonormal)  // step 7
      basis_.orthonormalise(next_.data(), row_.m, row_.gram.data(), static_cast<Offset>(s_.clock[kSteps]),
                            s_.clock[kLazySteps]);
    move_weights(label);
    if (!std::isfinite(dot(w_.data(), w_.data(), d_))) return false;
  }
  if (trace.prediction != nullptr) trace.prediction[row] = prediction;
  if (trace.residual != nullptr) trace.residual[row] = relative;
  return true;
}

}  // namespace

double keep_of(const Forgetting& rule, double* clock) {
  clock[kAge] += 1;
  return rule.kind == Forgetting::Kind::fixed ? rule.keep : 1 - rule.lost / (clock[kAge] + rule.start);
}

void remember_label(const LabelSums& sums, int d, double discount, double label, const double* code) {
  const bool known = !std::isnan(label);
  *sums.labels = discount * *sums.labels + (known ? 1.0 : 0.0);
  for (int i = 0; i < d; ++i) {
    sums.labelled[i] = discount * sums.labelled[i] + (known ? label * code[i] : 0.0);
    for (int k = 0; k < d; ++k) {
      double& sum = sums.codes[i * d + k];
      sum = discount * sum + (known ? code[i] * code[k] : 0.0);
    }
  }
}

template <class P, class T>
Offset rls_pass(const Rows<T>& rows, const Offset* order, Offset n_order, const double* label, const RlsRule& rule,
                const RlsState<P>& state, const RlsTrace& trace) {
  assert(well_ordered(rows));
  Pass<P, T> pass(rows, label, rule, state, longest_row(rows, order, n_order));
  InterruptCheck check;
  for (Offset k = 0; k < n_order; ++k, check.after(operations_of(rows, order[k - 1], state.d)))
    if (!pass.step(order[k], trace)) return k;
  return -1;
}

#define LACUNAR_RLS(P, T)                                                                              \
  template Offset rls_pass<P, T>(const Rows<T>&, const Offset*, Offset, const double*, const RlsRule&, \
                                 const RlsState<P>&, const RlsTrace&);
LACUNAR_RLS(double, double)
LACUNAR_RLS(double, float)
LACUNAR_RLS(float, double)
LACUNAR_RLS(float, float)
#undef LACUNAR_RLS

}  // namespace lacunar
