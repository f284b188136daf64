#include "lacunar/sums/donors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lacunar {
namespace {

// Where the k values nearest to a target begin. They are one window, which moves on from value i while it is further
// than value i + k: while their sum is below twice the target, and these sums ascend. Without branches on data, so that
// the searches of several targets overlap.
Offset first_of_nearest(const double* ascending, Offset n, Offset k, double twice) {
  const double* from = ascending;
  for (Offset length = n - k; length > 0;) {
    const Offset half = (length + 1) / 2;
    const double* const middle = from + half - 1;
    from = *middle + middle[k] < twice ? from + half : from;
    length -= half;
  }
  return from - ascending;
}

// The place of one of k values that begin at `first`, of those within reach of a target or the nearest, which are
// neighbours.
Offset draw_within(const double* ascending, Offset first, Offset k, double target, double reach, double uniform) {
  double bound = std::abs(ascending[first] - target);
  for (Offset i = 1; i < k; ++i) bound = std::min(bound, std::abs(ascending[first + i] - target));
  bound = std::max(bound, reach);
  while (k > 1 && std::abs(ascending[first] - target) > bound) ++first, --k;
  while (k > 1 && std::abs(ascending[first + k - 1] - target) > bound) --k;
  return first + static_cast<Offset>(uniform * static_cast<double>(k));
}

}  // namespace

void draw_nearest(const Donors& donors, const double* targets, const double* uniform, Offset m, Offset k, double reach,
                  Offset* picks, unsigned char* far) {
  const double* const ascending = donors.ascending;
  for (Offset j = 0; j < m; ++j) picks[j] = first_of_nearest(ascending, donors.n, k, 2 * targets[j]);
  for (Offset j = 0; j < m; ++j) {
    const Offset first = picks[j];
    far[j] = std::max(targets[j] - ascending[first], ascending[first + k - 1] - targets[j]) > reach;
    const Offset place = far[j] ? draw_within(ascending, first, k, targets[j], reach, uniform[j])
                                : first + static_cast<Offset>(uniform[j] * static_cast<double>(k));
    picks[j] = donors.order[place];
  }
}

void draw_nearest_of_sample(const Donors& donors, const Offset* sample, Offset size, const double* targets,
                            const double* uniform, Offset m, Offset k, double reach, Offset* picks, unsigned char* far) {
  std::vector<Offset> times(static_cast<std::size_t>(donors.n)), order;
  for (Offset i = 0; i < size; ++i) ++times[static_cast<std::size_t>(sample[i])];
  std::vector<double> ascending;
  ascending.reserve(static_cast<std::size_t>(size));
  order.reserve(static_cast<std::size_t>(size));
  for (Offset i = 0; i < donors.n; ++i) {
    const std::size_t repeats = static_cast<std::size_t>(times[static_cast<std::size_t>(donors.order[i])]);
    ascending.insert(ascending.end(), repeats, donors.ascending[i]);
    order.insert(order.end(), repeats, donors.order[i]);
  }
  draw_nearest({ascending.data(), order.data(), size}, targets, uniform, m, k, reach, picks, far);
}

}  // namespace lacunar
