// Whose turn it is to read or change something that several threads share.
#pragma once

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace lacunar::bind {

class Turn {
 public:
  // For as long as it lives. Made without the interpreter: whoever has the turn may be waiting for that. A thread that
  // has the turn and asks again would wait for itself: only a product that the caller defines can do so.
  class Hold {
   public:
    explicit Hold(Turn& turn) : turn_(turn) {
      const auto me = std::this_thread::get_id();
      if (turn_.owner_ == me)
        throw std::runtime_error(
            "apply must compute K x by itself; it asked the very engine that called it. Use arrays of its own, or ask "
            "the "
            "engine before or after.");
      turn_.mutex_.lock();
      turn_.owner_ = me;
    }
    ~Hold() {
      turn_.owner_ = std::thread::id();
      turn_.mutex_.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Turn& turn_;
  };

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

}  // namespace lacunar::bind
