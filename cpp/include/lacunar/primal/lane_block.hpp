// Some rows of a table laid side by side for the expansion kernels, and the sums they have gathered.
#pragma once

#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "lacunar/parallel/lines.hpp"

namespace lacunar {

template <class T>
class LaneBlock {
 public:
  // Rows named by `rows[0..count)` of a table; count is at most that of wide lanes. Sums begin at base (n_rows,
  // outputs) or 0.
  void load(const Rows<T>& table, const double* scale, const double* base, const Offset* rows, Offset count,
            Offset outputs);
  void clear();  // before the next load: the places in use become zero again

  // Sums over the support rows [first, last).
  void add(const Rows<T>& support, const T* scale, const double* coef, Offset first, Offset last,
           const RowKernel<T>& kernel, InterruptCheck& check);

  double sum(Offset lane, Offset output) const { return sums_[static_cast<std::size_t>(output * lanes_ + lane)]; }

 private:
  Offset lanes_ = 0, outputs_ = 0, in_use_ = 0;
  bool by_slot_ = false;
  LineVector<T> values_;
  LineVector<std::uint8_t> seen_;
  std::vector<T> scale_;
  std::vector<Index> slot_, used_;  // used: columns of slots 1, 2, ...
  LineVector<double> sums_;
  Expansion<T> expansion_{};
};

}  // namespace lacunar
