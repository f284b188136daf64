// Arrays that begin at a cache line: a wide load that straddles two lines costs as much as two.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace lacunar {

template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, line); }
  bool operator==(const LineAllocator&) const { return true; }
};

template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

struct LineDeleter {
  void operator()(void* memory) const { ::operator delete(memory, LineAllocator<double>::line); }
};

// Numbers that are not set to zero: each thread does that to its own, in its own cache.
inline std::unique_ptr<double[], LineDeleter> line_array(std::size_t n) {
  return std::unique_ptr<double[], LineDeleter>(LineAllocator<double>().allocate(n));
}

}  // namespace lacunar
