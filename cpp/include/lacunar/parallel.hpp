// The only place that makes threads. Threads are made per call and joined before it returns: nothing survives a fork,
// no pool is shared with anyone, and an exception in a worker is rethrown to the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

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
  std::vector<std::jthread> others;
  others.reserve(static_cast<std::size_t>(team - 1));
  for (int thread = 1; thread < team; ++thread) others.emplace_back(run, thread);
  run(0);
  others.clear();  // joins
  if (error) std::rethrow_exception(error);
}

}  // namespace lacunar
