// Donors of predictive mean matching: values that are nearest to a target.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// places (m): for each target the place of one of the k nearest of n ascending values, 1 <= k <= n, by its uniform
// number in [0, 1): among all k where they lie within reach; else far (m) is 1, and only those within reach count, or
// the nearest. O(m (log n + k)).
void draw_nearest(const double* ascending, Offset n, const double* targets, const double* uniform, Offset m, Offset k,
                  double reach, Offset* places, unsigned char* far);

}  // namespace lacunar
