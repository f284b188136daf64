#include "lacunar/rls.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/lazy_basis.hpp"
#include "lacunar/small_dense.hpp"

namespace lacunar {
namespace {

constexpr double kPivot = 1e-13, kRescue = 1e-8;  // relative to the mean diagonal
constexpr double kFastRate = .2, kSlowRate = .02;
constexpr int kAhead = 2;                 // columns prefetched ahead

// One row's matrices; square ones are (leading, leading).
struct Scratch {
  int leading;
  Offset largest;  // entries of a row there is room for
  std::vector<double> rows, next, change, e, factor, gram, inner_gram;
  std::vector<double> b, code, label_code, inner, gain, w, unpacked;

  Scratch(int d, Offset entries) : leading(padded(d)), largest(entries) {
    const std::size_t side = static_cast<std::size_t>(leading), square = side * side;
    const auto size = static_cast<std::size_t>(entries);
    for (auto* tall : {&rows, &next, &change}) tall->resize(size * side);
    for (auto* matrix : {&factor, &gram, &inner_gram}) matrix->resize(square);
    for (auto* line : {&b, &code, &label_code, &inner, &gain, &w}) line->resize(side);
    e.resize(size);
    unpacked.resize(static_cast<std::size_t>(rls_stride<double>(d)));
  }
};

// The inverse correlation of a column as blocks: in place for doubles, unpacked and packed again for floats.
double* unpack(double* stored, int, std::vector<double>&) { return stored; }
void pack(double*, int, const std::vector<double>&) {}
double* unpack(float* stored, int d, std::vector<double>& unpacked) {
  small_kernels().unpack(stored, d, unpacked.data());
  return unpacked.data();
}
void pack(float* stored, int d, const std::vector<double>& unpacked) {
  small_kernels().pack(unpacked.data(), d, stored);
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
      : rows_(rows), label_(label), rule_(rule), s_(state), d_(state.d), x_(state.d, largest),
        basis_(state.v, state.n_cols, state.d, state.t, state.t_inverse) {
    std::copy(s_.w, s_.w + d_, x_.w.begin());
  }

  ~Pass() { std::copy(x_.w.begin(), x_.w.begin() + d_, s_.w); }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // False when the row was left out because its step is not finite.
  bool step(Offset row, const RlsTrace& trace);

 private:
  void gather();
  void factorise();
  double find_codes(double label, double* prediction);
  bool residuals(const double* code);
  double keep(double relative);
  void update_columns();
  void move_weights(double label);

  const Rows<T>& rows_;
  const double* label_;
  const RlsRule& rule_;
  const RlsState<P>& s_;
  int d_;
  Scratch x_;
  LazyBasis basis_;
  const Index* seen_ = nullptr;
  const T* values_ = nullptr;
  int m_ = 0;
};

// rows (m, leading) = V_O, its Gram, and b = V_O^T x.
template <class P, class T>
void Pass<P, T>::gather() {
  basis_.gather(seen_, m_, x_.rows.data());
  for (int i = 0; i < m_; ++i) x_.e[static_cast<std::size_t>(i)] = static_cast<double>(values_[i]);
  small_kernels().gram(x_.rows.data(), m_, x_.leading, x_.gram.data());
  small_kernels().combine(x_.rows.data(), x_.e.data(), m_, x_.leading, x_.b.data());
}

// Cholesky factor of V_O^T V_O + ridge T^-T T^-1 (the ridge is on codes in U's coordinates); a singular one is rescued by
// a small ridge and counted.
template <class P, class T>
void Pass<P, T>::factorise() {
  const int ld = x_.leading;
  x_.factor = x_.gram;
  double trace = 0;
  for (int i = 0; i < d_; ++i) trace += x_.gram[static_cast<std::size_t>(i * ld + i)];
  if (rule_.ridge > 0 && rule_.orthonormal) {
    small_kernels().gram(basis_.t_inverse().data(), d_, ld, x_.inner_gram.data());
    for (std::size_t i = 0; i < x_.factor.size(); ++i) x_.factor[i] += rule_.ridge * x_.inner_gram[i];
  } else {
    for (int i = 0; i < d_; ++i) x_.factor[static_cast<std::size_t>(i * ld + i)] += rule_.ridge;
  }
  const double mean = trace / d_;
  if (cholesky(x_.factor.data(), d_, ld, kPivot * mean)) return;
  s_.clock[kSingular] += 1;
  x_.factor = x_.gram;
  const double rescue = std::max(rule_.ridge, kRescue * (mean > 0 ? mean : 1));
  for (int i = 0; i < d_; ++i) x_.factor[static_cast<std::size_t>(i * ld + i)] += rescue;
  cholesky(x_.factor.data(), d_, ld, std::numeric_limits<double>::min());
}

// code: a0, label_code: a0 + c g of section 4.2, step 5, in V's coordinates; the prediction w a0. Returns the |x - V a0|^2
// over |x|^2 of the code that has not seen the label.
template <class P, class T>
double Pass<P, T>::find_codes(double label, double* prediction) {
  std::copy(x_.b.begin(), x_.b.end(), x_.code.begin());
  cholesky_solve(x_.factor.data(), d_, x_.leading, x_.code.data());
  if (rule_.orthonormal)
    basis_.to_v(x_.w.data(), x_.inner.data());
  else
    x_.inner = x_.w;
  *prediction = dot(x_.inner.data(), x_.code.data(), d_);
  // |x - V a|^2 = |x|^2 - 2 a b + a G a, without a second look at the rows
  small_kernels().project(x_.gram.data(), x_.code.data(), x_.leading, x_.leading, x_.gain.data());
  double size = 0;
  for (int i = 0; i < m_; ++i) size += x_.e[static_cast<std::size_t>(i)] * x_.e[static_cast<std::size_t>(i)];
  const double left = size - 2 * dot(x_.code.data(), x_.b.data(), d_) + dot(x_.code.data(), x_.gain.data(), d_);
  x_.label_code = x_.code;
  if (!std::isnan(label) && std::isfinite(rule_.lam1)) {
    std::copy(x_.inner.begin(), x_.inner.end(), x_.gain.begin());
    cholesky_solve(x_.factor.data(), d_, x_.leading, x_.gain.data());
    const double c = (label - *prediction) / (rule_.lam1 + dot(x_.inner.data(), x_.gain.data(), d_));
    for (int k = 0; k < d_; ++k) x_.label_code[static_cast<std::size_t>(k)] += c * x_.gain[static_cast<std::size_t>(k)];
  }
  return size > 0 ? std::max(left, 0.0) / size : 0.0;
}

// e = x - V_O code; false when it is not finite.
template <class P, class T>
bool Pass<P, T>::residuals(const double* code) {
  small_kernels().project(x_.rows.data(), code, m_, x_.leading, x_.next.data());
  double size = 0;
  for (int i = 0; i < m_; ++i) {
    double& e = x_.e[static_cast<std::size_t>(i)];
    e -= x_.next[static_cast<std::size_t>(i)];
    size += e * e;
  }
  return std::isfinite(size);
}

// This step's discount of the past.
template <class P, class T>
double Pass<P, T>::keep(double relative) {
  const Forgetting& rule = rule_.forgetting;
  double *age = s_.clock + kAge, *fast = s_.clock + kFast, *slow = s_.clock + kSlow;
  *age += 1;
  if (rule.kind == Forgetting::Kind::fixed) return rule.keep;
  const double kept = 1 - rule.lost / (*age + rule.start);
  if (rule.kind == Forgetting::Kind::window) return kept;
  *fast += kFastRate * (relative - *fast);
  *slow += std::max(kSlowRate, 1 / *age) * (relative - *slow);
  if (*age > 1 / kSlowRate && *fast > rule.alarm * *slow) {
    *age = 0;
    *slow = *fast;
  }
  return std::clamp(kept, rule.least, rule.most);
}

// Algorithm 2 on the observed columns: next (m, leading) = V_O + e_j R_j a T^-1, written back to V.
template <class P, class T>
void Pass<P, T>::update_columns() {
  const int ld = x_.leading;
  const double now = s_.clock[kLogDiscount];
  const double* a = rule_.orthonormal ? x_.inner.data() : x_.label_code.data();
  const Offset stride = rls_stride<P>(d_);
  const auto stored_at = [&](int i) { return s_.pool + static_cast<Offset>(s_.slot[seen_[i]]) * stride; };
  for (int i = 0; i < m_; ++i) {
    if (i + kAhead < m_) prefetch(stored_at(i + kAhead), stride * static_cast<Offset>(sizeof(P)));
    const Index j = seen_[i];
    P* stored = stored_at(i);
    double* blocks = unpack(stored, d_, x_.unpacked);
    double grow = std::exp(s_.discount[j] - now);
    if (grow > 1) grow = std::max(1.0, std::min(grow, rule_.cap * rule_.delta / largest_diagonal(blocks, d_)));
    s_.discount[j] = now;
    small_kernels().rls_update(blocks, d_, a, grow, x_.gain.data());
    pack(stored, d_, x_.unpacked);
    double* change = x_.change.data() + static_cast<Offset>(i) * ld;
    const double e = x_.e[static_cast<std::size_t>(i)];
    for (int k = 0; k < ld; ++k) change[k] = e * x_.gain[static_cast<std::size_t>(k)];
  }
  const double* change = x_.change.data();
  if (rule_.orthonormal) {
    small_kernels().multiply(change, basis_.t_inverse().data(), m_, ld, x_.next.data());
    change = x_.next.data();
  }
  const auto size = static_cast<std::size_t>(m_) * static_cast<std::size_t>(ld);
  for (std::size_t k = 0; k < size; ++k) x_.next[k] = x_.rows[k] + change[k];
  basis_.scatter(seen_, m_, x_.next.data());
}

// Step 8, with the code of step 5 (in U's coordinates of before step 7, as printed).
template <class P, class T>
void Pass<P, T>::move_weights(double label) {
  if (std::isnan(label) || rule_.rho == 0) return;
  const double t = s_.clock[kSteps], until = static_cast<double>(rule_.constant_until);
  const double eta = t <= until ? rule_.rho : rule_.rho * (rule_.continuous ? until : 1.0) / t;
  const double* a = rule_.orthonormal ? x_.inner.data() : x_.label_code.data();
  const double error = dot(a, x_.w.data(), d_) - label;
  for (int k = 0; k < d_; ++k) {
    double& w = x_.w[static_cast<std::size_t>(k)];
    w -= eta * (2 * error * a[k] + rule_.lam3 * w);
    w = std::copysign(std::max(std::abs(w) - eta * rule_.lam2, 0.0), w);
  }
}

template <class P, class T>
bool Pass<P, T>::step(Offset row, const RlsTrace& trace) {
  const Offset first = rows_.offsets[row];
  seen_ = rows_.indices + first;
  values_ = rows_.values + first;
  m_ = static_cast<int>(rows_.offsets[row + 1] - first);
  const double label = label_ == nullptr ? std::numeric_limits<double>::quiet_NaN() : label_[row];
  double prediction = 0, relative = 0;
  if (m_ > 0) {
    gather();
    factorise();
    relative = find_codes(label, &prediction);
    if (!residuals(x_.label_code.data()) || !std::isfinite(relative) || !std::isfinite(prediction)) return false;
    if (rule_.orthonormal) basis_.to_u(x_.label_code.data(), x_.inner.data());
    s_.clock[kSteps] += 1;
    s_.clock[kLogDiscount] += std::log(keep(relative));
    update_columns();
    if (rule_.orthonormal)  // step 7
      basis_.orthonormalise(x_.next.data(), m_, x_.gram.data(), static_cast<Offset>(s_.clock[kSteps]), s_.clock[kLazySteps]);
    move_weights(label);
    if (!std::isfinite(dot(x_.w.data(), x_.w.data(), d_))) return false;
  }
  if (trace.prediction != nullptr) trace.prediction[row] = prediction;
  if (trace.residual != nullptr) trace.residual[row] = relative;
  return true;
}

}  // namespace

template <class P, class T>
Offset rls_pass(const Rows<T>& rows, const Offset* order, Offset n_order, const double* label, const RlsRule& rule,
                const RlsState<P>& state, const RlsTrace& trace) {
  Offset largest = 1;
  for (Offset k = 0; k < n_order; ++k)
    largest = std::max(largest, rows.offsets[order[k] + 1] - rows.offsets[order[k]]);
  Pass<P, T> pass(rows, label, rule, state, largest);
  for (Offset k = 0; k < n_order; ++k)
    if (!pass.step(order[k], trace)) return k;
  return -1;
}

#define LACUNAR_RLS(P, T)                                                                                            \
  template Offset rls_pass<P, T>(const Rows<T>&, const Offset*, Offset, const double*, const RlsRule&,               \
                                 const RlsState<P>&, const RlsTrace&);
LACUNAR_RLS(double, double)
LACUNAR_RLS(double, float)
LACUNAR_RLS(float, double)
LACUNAR_RLS(float, float)
#undef LACUNAR_RLS

}  // namespace lacunar
