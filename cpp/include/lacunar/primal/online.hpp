// Algorithm 1 of KARMA over support rows. Rows are taken in groups of lanes: values from the rows kept so far come from
// one walk over those, the rest from rows of the same group as they are kept. Sums run in order of arrival, each lane
// by itself, so that groups, blocks and threads of any size give the same bits.
#pragma once

#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/primal/lesson.hpp"
#include "lacunar/primal/step_clock.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// The rows kept so far: `count` in use, and room for those to come.
template <class T>
struct Support {
  Offset count;
  Offset* offsets;
  Index* indices;
  T* values;
  T* scale;       // 1 / sqrt(k(x, x)) for the cosine, or null
  double* first;  // (count, outputs): v = clock[kScale] * sum_i first_i phi(x_i)
  double* second;
};

// Steps for order[0], order[1], ...: the number taken, less than n_order where a fold is due, or -1 - k where those of
// order[k] are not finite. Writes values (n_rows, outputs) before every row's own step. Threads work ahead inside
// `block` rows. After a fold by a scale of 0, which the values of the next row came before, go on with `valued`: they
// stand in `values`.
template <class T>
Offset online_descend(const RowKernel<T>& kernel, const Lesson<T, T>& lesson, const StepRule& rule, Offset block,
                      Support<T>& support, double* clock, double* values, bool valued, int n_threads);

// values (n_rows, outputs) of sum_i coef_i k(x_i, .).
template <class T>
void online_decide(const RowKernel<T>& kernel, const Rows<T>& rows, const T* scale, const Support<T>& support,
                   const double* coef, Offset outputs, double* values, int n_threads);

}  // namespace lacunar
