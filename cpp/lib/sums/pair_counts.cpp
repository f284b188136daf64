#include <algorithm>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/parallel.hpp"
#include "lacunar/sums/pair_sums.hpp"

namespace lacunar {
namespace {

constexpr Offset kWords = 64;  // of a bit column: 4,096 rows, so that the columns of some thousands stay in cache
constexpr Offset kColumnsATask = 16;

// bits (n_places, kWords): bit i of a column is set where row first + i observes it.
template <class T, class Place>
void set_bits(const Rows<T>& rows, Offset first, Offset last, const Place& place, std::vector<std::uint64_t>& bits) {
  std::fill(bits.begin(), bits.end(), std::uint64_t{0});
  for (Offset i = first; i < last; ++i) {
    const Offset word = (i - first) / 64;
    const std::uint64_t bit = std::uint64_t{1} << (i - first) % 64;
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p)
      if (const Offset at = place(rows.indices[p]); at >= 0) bits[static_cast<std::size_t>(at * kWords + word)] |= bit;
  }
}

}  // namespace

template <class T>
void column_pair_counts(const Rows<T>& rows, const Index* place, Offset n_places, Offset* count, int n_threads) {
  const Offset d = n_places;
  const CountCommon common = kernels().count_common;
  std::vector<std::uint64_t> bits(static_cast<std::size_t>(d * kWords));
  InterruptCheck check;  // of all rounds: one by itself is short
  for (Offset first = 0; first < rows.n_rows; first += 64 * kWords, check.look()) {
    const Offset last = std::min(first + 64 * kWords, rows.n_rows);
    if (place)
      set_bits(rows, first, last, [place](Index j) { return Offset{place[j]}; }, bits);
    else
      set_bits(rows, first, last, [](Index j) { return Offset{j}; }, bits);
    parallel_tasks(n_threads, (d + kColumnsATask - 1) / kColumnsATask, [&](Offset task, InterruptCheck&) {
      for (Offset i = task * kColumnsATask; i < std::min((task + 1) * kColumnsATask, d); ++i)
        common(bits.data() + i * kWords, bits.data() + i * kWords, kWords, d - i, count + i * d + i);
    });
  }
}

template void column_pair_counts(const Rows<float>&, const Index*, Offset, Offset*, int);
template void column_pair_counts(const Rows<double>&, const Index*, Offset, Offset*, int);

}  // namespace lacunar
