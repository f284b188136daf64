// Donors of predictive mean matching: values that are nearest to a target.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// Rows that may be drawn, by ascending values (n).
struct Donors {
  const double* ascending;
  const Offset* order;  // (n) the row of each value
  Offset n;
};

// picks (m): for each target one of the k donors that are nearest, 1 <= k <= n, by its uniform number in [0, 1): among
// all k where they lie within reach; else far (m) is 1, and only those within reach count, or the nearest.
// O(m (log n + k)).
void draw_nearest(const Donors& donors, const double* targets, const double* uniform, Offset m, Offset k, double reach,
                  Offset* picks, unsigned char* far);

// The same where donors are a sample (size) of the rows, 0 <= row < n, each as often as it stands there; k <= size.
void draw_nearest_of_sample(const Donors& donors, const Offset* sample, Offset size, const double* targets,
                            const double* uniform, Offset m, Offset k, double reach, Offset* picks, unsigned char* far);

}  // namespace lacunar
