#include "lacunar/sums/donors.hpp"

#include <algorithm>
#include <cmath>

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

void draw_nearest(const double* ascending, Offset n, const double* targets, const double* uniform, Offset m, Offset k,
                  double reach, Offset* places, unsigned char* far) {
  for (Offset j = 0; j < m; ++j) places[j] = first_of_nearest(ascending, n, k, 2 * targets[j]);
  for (Offset j = 0; j < m; ++j) {
    const Offset first = places[j];
    far[j] = std::max(targets[j] - ascending[first], ascending[first + k - 1] - targets[j]) > reach;
    places[j] = far[j] ? draw_within(ascending, first, k, targets[j], reach, uniform[j])
                       : first + static_cast<Offset>(uniform[j] * static_cast<double>(k));
  }
}

}  // namespace lacunar
