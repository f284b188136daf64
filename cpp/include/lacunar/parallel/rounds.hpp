// Threads that take a share of every one of many short rounds of a call, each of some microseconds: too short to start
// threads for. Whoever waits spins for a while and then sleeps. Where another process keeps a core busy, the calling
// thread goes on alone for a time and then asks the helpers again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

#include "lacunar/parallel/parallel.hpp"

namespace lacunar {

class Rounds {
 public:
  // share(member) is what a helper, 1 to size() - 1, does in a round. It reads what the calling thread wrote before the
  // round, and must neither throw nor take memory.
  Rounds(int n_threads, std::function<void(int)> share);
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // The calling thread and the helpers that were started; it does not change.
  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Whether the helpers wait for a round now; if not, they are asked to, for later rounds. Both are right for the
  // caller: a round that is not shared is done alone.
  bool ready();

  // A round: own() is the calling thread's share. Returns when all shares are done.
  template <class Own>
  void run(const Own& own) {
    ask(Task::share);
    own();
    wait();
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Number = std::int32_t;  // of a task, wrapping: what futexes compare
  enum class Task { answer, share, leave };
  struct alignas(64) Helper {
    std::atomic<Number> done{0};
    std::atomic<bool> asleep{true};
  };

  static bool quiet();                        // whether cores were busy a short while ago
  static void lost(Clock::time_point since);  // by waiting for a core
  void serve(int member, Helper& own);
  void ask(Task task);
  bool answered() const;
  bool any_asleep() const;
  void wait();

  alignas(64) std::atomic<Number> asked_{0};
  std::atomic<bool> waits_{false};  // the calling thread, asleep
  std::atomic<Task> task_{Task::answer};
  std::function<void(int)> share_;
  std::deque<Helper> helpers_;
  bool asking_ = false;   // an answer is due before the next round
  bool resting_ = false;  // rounds go on without helpers until `quiet_until`
  Team team_;             // joined first
};

}  // namespace lacunar
