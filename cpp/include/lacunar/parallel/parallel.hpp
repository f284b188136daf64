// The only place that makes threads. Threads are made per call and joined before it returns: nothing survives a fork,
// no pool is shared with anyone, and an exception in a worker is rethrown to the caller.
#pragma once

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lacunar/parallel/interrupt.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// Threads that are joined when it goes out of scope, however it does: std::jthread, which libc++ (macOS) keeps
// experimental.
class Team {
 public:
  explicit Team(int size) { threads_.reserve(static_cast<std::size_t>(size)); }
  ~Team() { join(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  template <class Run>
  void start(Run&& run) {
    threads_.emplace_back(std::forward<Run>(run));
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

// What one thread does in a call: its space and the work on it, without their types. All that makes threads is compiled
// once, in lib/parallel.cpp, not once a loop.
class Worker {
 public:
  Worker() = default;
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual void run(Offset task, InterruptCheck& check) = 0;
};

using NewWorker = std::unique_ptr<Worker> (*)(const void* make, const void* work);
void run_tasks(int n_threads, Offset n_tasks, NewWorker worker, const void* make, const void* work);

// Calls work(space, task, check) for every task in [0, n_tasks), handing tasks out in increasing order. Every thread
// that takes part has a space = make() of its own; check is asked between tasks and may be asked within them. Where a
// thread does not start, or has no memory for a space, those that did go on. Spaces are made by the caller: a thread
// that throws for want of memory may find none for the exception either, and glibc then aborts.
template <class Make, class Work>
void parallel_tasks(int n_threads, Offset n_tasks, const Make& make, const Work& work) {
  struct Typed final : Worker {
    decltype(make()) space;
    const Work& on;
    Typed(const Make& make, const Work& work) : space(make()), on(work) {}
    void run(Offset task, InterruptCheck& check) override { on(space, task, check); }
  };
  const NewWorker typed = [](const void* any_make, const void* any_work) -> std::unique_ptr<Worker> {
    return std::make_unique<Typed>(*static_cast<const Make*>(any_make), *static_cast<const Work*>(any_work));
  };
  run_tasks(n_threads, n_tasks, typed, &make, &work);
}

// The same where tasks need no space: work(task, check).
template <class Work>
void parallel_tasks(int n_threads, Offset n_tasks, const Work& work) {
  struct Nothing {};
  parallel_tasks(
      n_threads, n_tasks, [] { return Nothing{}; },
      [&](Nothing&, Offset task, InterruptCheck& check) { work(task, check); });
}

// As many threads as have some hundred microseconds each to do, in products of vectors: starting one takes tens of
// them.
inline int threads_worth(int n_threads, double operations) {
  constexpr double kOperationsAThread = 1 << 23;
  return static_cast<int>(
      std::clamp(operations / kOperationsAThread, 1.0, static_cast<double>(std::max(n_threads, 1))));
}

}  // namespace lacunar
