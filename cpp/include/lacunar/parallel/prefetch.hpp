// Asks for memory before it is needed, where the compiler can say so: hardware does not foresee random rows.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

enum class For { reading, writing, reading_once };

template <For purpose>
inline void prefetch([[maybe_unused]] const void* from) {
#if defined(__GNUC__)
  __builtin_prefetch(from, purpose == For::writing ? 1 : 0, purpose == For::reading_once ? 2 : 3);
#endif
}

// Elements [first, last) of an array, a cache line at a time.
template <For purpose, class T>
inline void prefetch(const T* array, Offset first, Offset last) {
  for (Offset k = first; k < last; k += 64 / static_cast<Offset>(sizeof(T))) prefetch<purpose>(array + k);
}

}  // namespace lacunar
