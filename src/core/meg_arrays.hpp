// What the bindings of matrix exponentiated gradient share.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "lacunar/meg/meg_sides.hpp"

namespace lacunar::bind {

using Doubles = Array<double>;
using Indices = Array<Index>;

// The array lives as long as the core borrows it, and is let go with the interpreter held.
inline MegSource source_of(const Doubles& table, Offset vertices) {
  expect_matrix(table, "table");
  if (int_of(vertices, "vertices") > table.shape(0)) throw std::invalid_argument("table has fewer rows");
  const std::shared_ptr<const void> keeper(new Doubles(table), [](const Doubles* held) {
    const Acquired gil;
    delete held;
  });
  return {table.data(), vertices, table.shape(1), keeper};
}

inline MegSource square_of(const Doubles& kernel, Offset vertices) {
  auto source = source_of(kernel, vertices);
  if (vertices > source.leading) throw std::invalid_argument("kernel has fewer columns");
  return source;
}

template <class T>
std::vector<T> vector_of(const Array<T>& a) {
  return {a.data(), a.data() + a.size()};
}

using Busy = std::shared_ptr<std::atomic<bool>>;  // whether a call is at work on a side

// For as long as it lives. Threads come one by one, by the model's lock: whoever comes in between is a product that
// the caller defines.
class AtWork {
 public:
  explicit AtWork(const Busy& busy) : busy_(*busy) {
    if (busy_.exchange(true))
      throw std::runtime_error(
          "apply must compute K x by itself; it asked the very engine that called it. Use arrays of its own, or ask "
          "the engine before or after.");
  }
  ~AtWork() { busy_ = false; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  std::atomic<bool>& busy_;
};

// One side of one engine.
class Side {
 public:
  explicit Side(std::shared_ptr<MegSide> held)
      : held_(std::move(held)), busy_(std::make_shared<std::atomic<bool>>(false)) {}
  virtual ~Side() = default;

  template <class F>
  auto locked(F&& call) const {
    const Released nogil;
    const AtWork mine(busy_);
    return call(*held_);
  }

  const Busy& busy() const { return busy_; }
  // For the one engine that seats vertices on it.
  std::shared_ptr<MegSide> give() {
    if (given_.exchange(true))
      throw std::invalid_argument("every engine needs sides of its own; one of these has an engine");
    return held_;
  }

 private:
  std::shared_ptr<MegSide> held_;
  Busy busy_;
  std::atomic<bool> given_{false};
};

}  // namespace lacunar::bind
