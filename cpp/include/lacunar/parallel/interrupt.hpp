// Long calls ask now and then whether they are to stop: the calling thread asks its host, helpers look at a flag.
#pragma once

#include <atomic>
#include <chrono>

#include "lacunar/types.hpp"

namespace lacunar {

// Throws when the user wants the running call to end (Ctrl-C). The bindings set it; without one, calls run to their
// end.
using InterruptProbe = void (*)();
void set_interrupt_probe(InterruptProbe probe);

struct Stopped {};  // thrown in a helper whose caller has stopped

// While it lives, checks of the calling thread do not ask: for short work that must not end half done.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

// Made where a call begins. Throws from `look` and `after` only: whoever calls them must leave nothing half-changed
// there.
class InterruptCheck {
 public:
  InterruptCheck() : asked_(Clock::now()) {}                                                    // of the calling thread
  explicit InterruptCheck(const std::atomic<bool>& stop) : InterruptCheck() { stop_ = &stop; }  // of a helper

  // After so many additions and products: free but for a sum, until there are enough of them to look.
  void after(Offset operations) {
    spent_ += operations;
    if (spent_ >= kOperations) look();
  }

  // Asks the host if it was not asked for a while: a look at the clock else.
  void look();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Offset kOperations = 1 << 18;          // some tens to hundreds of microseconds
  static constexpr std::chrono::milliseconds kPause{50};  // asking may wait for the interpreter

  Offset spent_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
  Clock::time_point asked_;
};

}  // namespace lacunar
