// Compiled once per instruction set into its own namespace: common bits of one bit column with others.
#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {

namespace {

inline std::uint64_t ones(std::uint64_t word) {
#if defined(LACUNAR_VECTORS)
  return static_cast<std::uint64_t>(__builtin_popcountll(word));
#else
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56;
#endif
}

void count_common(const std::uint64_t* one, const std::uint64_t* others, Offset words, Offset n, Offset* counts) {
  for (Offset j = 0; j < n; ++j) {
    const std::uint64_t* other = others + j * words;
    std::uint64_t sum = 0;
    for (Offset w = 0; w < words; ++w) sum += ones(one[w] & other[w]);
    counts[j] += static_cast<Offset>(sum);
  }
}

}  // namespace

void set_counts(Kernels& to) { to.count_common = count_common; }

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
