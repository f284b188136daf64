#include <algorithm>
#include <cassert>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "lacunar/rls/cell_screen.hpp"
#include "lacunar/rls/lazy_basis.hpp"
#include "lacunar/rls/row_code.hpp"
#include "lacunar/rls/small_dense.hpp"
#include "lacunar/rls/trackers.hpp"

namespace lacunar {
namespace {

template <class T>
class Grouse {
 public:
  Grouse(const Rows<T>& rows, double damping, double ridge, const GrouseState& state, Offset largest)
      : rows_(rows),
        damping_(damping),
        ridge_(ridge),
        s_(state),
        row_(state.d, largest),
        basis_(state.v, state.n_cols, state.d, state.t, state.t_inverse),
        screen_(state.screen, state.d, largest) {
    const auto side = static_cast<std::size_t>(row_.leading);
    for (auto* line : {&code_, &direction_}) line->resize(side);
    t_gram_.resize(side * side);
    fitted_.resize(row_.x.size());
  }

  bool step(Offset row, const RlsTrace& trace) {
    const Offset first = rows_.offsets[row];
    const int m = static_cast<int>(rows_.offsets[row + 1] - first);
    double relative = 0;
    if (m > 0 && !turn(rows_.indices + first, rows_.values + first, m, &relative)) return false;
    if (trace.residual != nullptr) trace.residual[row] = relative;
    return true;
  }

 private:
  bool turn(const Index* seen, const T* values, int m, double* relative);
  bool factorise() { return row_.factorise(ridge_, t_gram_.data(), ridge_ > 0 ? kSingular : kExact); }

  const Rows<T>& rows_;
  double damping_, ridge_;
  const GrouseState& s_;
  RowCode row_;
  LazyBasis basis_;
  CellScreen screen_;
  std::vector<double> code_, direction_, t_gram_, fitted_;
};

// U += ((cos - 1) p / |p| + sin r / |r|) a^T / |a| with p = U a, |p| = |a|, angle = damping arctan(|r| / |p|).
template <class T>
bool Grouse<T>::turn(const Index* seen, const T* values, int m, double* relative) {
  basis_.gather(seen, m, row_.rows.data());
  row_.load(values, m);
  kernels().small.gram(basis_.t_inverse().data(), s_.d, row_.leading, t_gram_.data());
  bool factored = factorise();
  if (const Index* clean = factored ? screen_.clean(row_, seen) : seen; clean != seen) {
    seen = clean;
    m = row_.m;
    factored = factorise();
  }
  int singular = 0;
  if (!factored || !screen_.take_errors(code_, row_.x)) {
    if (factored) {
      row_.solve(row_.right, code_);
    } else {
      singular = row_.shortest(basis_.t().data(), nullptr, 0, direction_) < s_.d ? 1 : 0;
      basis_.from_u(direction_.data(), code_.data());
    }
    kernels().small.project(row_.rows.data(), code_.data(), m, row_.leading, fitted_.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) row_.x[i] -= fitted_[i];
  }
  const double missed = std::sqrt(dot(row_.x.data(), row_.x.data(), m));
  basis_.to_u(code_.data(), direction_.data());
  const double length = std::sqrt(dot(direction_.data(), direction_.data(), s_.d));
  if (!std::isfinite(missed) || !std::isfinite(length)) return false;
  *relative = row_.size > 0 ? std::min(missed * missed / row_.size, 1.0) : 0.0;
  s_.clock[kSteps] += 1;
  s_.clock[kSingularRows] += singular;
  if (length == 0 || missed == 0) return true;
  for (double& x : direction_) x /= length;
  const double angle = damping_ * std::atan2(missed, length);
  basis_.rotate(seen, m, row_.x.data(), missed, direction_, angle, s_.clock[kLazySteps]);
  return true;
}

}  // namespace

template <class T>
Offset grouse_pass(const Rows<T>& rows, const Offset* order, Offset n_order, double damping, double ridge,
                   const GrouseState& state, const RlsTrace& trace) {
  assert(well_ordered(rows));
  Grouse<T> pass(rows, damping, ridge, state, longest_row(rows, order, n_order));
  InterruptCheck check;
  for (Offset k = 0; k < n_order; ++k, check.after(operations_of(rows, order[k - 1], state.d)))
    if (!pass.step(order[k], trace)) return k;
  return -1;
}

template Offset grouse_pass<float>(const Rows<float>&, const Offset*, Offset, double, double, const GrouseState&,
                                   const RlsTrace&);
template Offset grouse_pass<double>(const Rows<double>&, const Offset*, Offset, double, double, const GrouseState&,
                                    const RlsTrace&);

}  // namespace lacunar
