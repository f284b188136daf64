// The only place that makes threads. Threads are made per call and joined before it returns: nothing survives a fork,
// no pool is shared with anyone, and an exception in a worker is rethrown to the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

// Threads that are joined when it goes out of scope, however it does: std::jthread, which libc++ (macOS) keeps experimental.
class Team {
 public:
  explicit Team(int size) { threads_.reserve(static_cast<std::size_t>(size)); }
  ~Team() {
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  template <class Run>
  void start(const Run& run, int thread) {
    threads_.emplace_back(std::cref(run), thread);
  }

 private:
  std::vector<std::thread> threads_;
};

// Calls work(thread, task) for every task in [0, n_tasks), handing tasks out in increasing order.
template <class Work>
void parallel_tasks(int n_threads, Offset n_tasks, Work&& work) {
  const int team = static_cast<int>(std::clamp<Offset>(n_tasks, 1, std::max(n_threads, 1)));
  if (team == 1) {
    for (Offset task = 0; task < n_tasks; ++task) work(0, task);
    return;
  }
  std::atomic<Offset> next{0};
  std::exception_ptr error;
  std::mutex error_lock;
  const auto run = [&](int thread) {
    try {
      for (Offset task; (task = next.fetch_add(1)) < n_tasks;) work(thread, task);
    } catch (...) {
      const std::lock_guard hold(error_lock);
      if (!error) error = std::current_exception();
      next = n_tasks;
    }
  };
  {
    Team others(team - 1);
    for (int thread = 1; thread < team; ++thread) others.start(run, thread);
    run(0);
  }  // joined
  if (error) std::rethrow_exception(error);
}

}  // namespace lacunar
