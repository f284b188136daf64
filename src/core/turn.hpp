// Whose turn it is to read or change something that several threads share.
#pragma once

#ifndef _WIN32
#include <unistd.h>
#endif

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace lacunar::bind {

class Turn {
 public:
  // For as long as it lives. Made without the interpreter: whoever has the turn may be waiting for that. A thread that
  // has the turn and asks again would wait for itself: only a product that the caller defines can do so. In a forked
  // child a turn that another thread had stays taken: that thread is the parent's.
  class Hold {
   public:
    explicit Hold(Turn& turn) : turn_(turn) {
      const long holder = turn_.process_;
      if (holder != kNone && holder != process())
        throw std::runtime_error(
            "a model must be at rest when its process forks; another thread was at work on this one. Load it in the "
            "child, fork before threads begin, or start processes by 'spawn'.");
      const auto me = std::this_thread::get_id();
      if (turn_.owner_ == me)
        throw std::runtime_error(
            "apply must compute K x by itself; it asked the very engine that called it. Use arrays of its own, or ask "
            "the "
            "engine before or after.");
      turn_.mutex_.lock();
      turn_.process_ = process();
      turn_.owner_ = me;
    }
    ~Hold() {
      turn_.owner_ = std::thread::id();
      turn_.process_ = kNone;
      turn_.mutex_.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Turn& turn_;
  };

 private:
  static constexpr long kNone = -1;
  static long process() {
#ifdef _WIN32
    return 0;  // which cannot fork
#else
    return static_cast<long>(getpid());
#endif
  }

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  std::atomic<long> process_{kNone};  // of the thread that has the turn
};

}  // namespace lacunar::bind
