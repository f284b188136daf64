// Whether a step keeps every entry of the weight tables among the finite numbers: known before anything is added.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacunar/types.hpp"

namespace lacunar {

// Bounds on the moduli of both tables: what rows have added to an entry at most, all outputs together.
template <class T>
class TableRange {
 public:
  // Of the features of the rows to come none is larger.
  void expect(double largest_feature) { feature_ = std::max(largest_feature, 1.0); }

  // Whether c features may be added to the first table, and `late` times that to the second. Not where c is NaN.
  bool admits(double c, double late) const {
    const double entry = std::abs(c) * feature_;
    return first_ + entry <= kLargest && second_ + entry * std::abs(late) <= kLargest;
  }
  void add(double c, double late) {
    const double entry = std::abs(c) * feature_;
    first_ += entry;
    second_ += entry * std::abs(late);
  }
  void fold(double scale, double reach) {
    second_ += std::abs(reach) * first_;
    first_ *= std::abs(scale);
  }
  void measure(const T* first, const T* second, Offset size) {
    first_ = largest(first, size);
    second_ = second == nullptr ? 0 : largest(second, size);
  }

 private:
  static constexpr double kLargest = static_cast<double>(std::numeric_limits<T>::max()) / 4;

  static double largest(const T* table, Offset size) {
    double modulus = 0;
    for (Offset i = 0; i < size; ++i) modulus = std::max(modulus, std::abs(static_cast<double>(table[i])));
    return modulus;
  }

  double first_ = 0, second_ = 0, feature_ = 1;
};

}  // namespace lacunar
