// The map of a kernel's features, from its options.
#pragma once

#include <array>

#include "lacunar/primal/primal.hpp"
#include "options.hpp"

namespace lacunar::bind {

inline FeatureMap map_of(const py::dict& options) {
  const auto weight = option<std::array<double, 3>>(options, "weight");
  const FeatureMap map{option<int>(options, "gamma"),       option<Offset>(options, "n_cols"),
                       option<double>(options, "constant"), option<double>(options, "indicator"),
                       {weight[0], weight[1], weight[2]},   option<int>(options, "hash_bits")};
  if (map.gamma < 1 || map.gamma > 3) throw std::invalid_argument("gamma must be 1, 2 or 3");
  int_of(map.n_cols, "n_cols");
  if (map.rows() >= (Offset{1} << 31)) throw std::invalid_argument("too many rows for the table");
  if (map.hash_bits < 0 || map.hash_bits > 40) throw std::invalid_argument("hash_bits must lie between 0 and 40");
  product_of({map.rows(), map.width()});
  return map;
}

inline void expect_whole(const FeatureMap& map) {
  if (map.gamma > 2 || map.hash_bits > 0)
    throw std::invalid_argument("blocks of rows need gamma 1 or 2 and a whole table");
}

}  // namespace lacunar::bind
