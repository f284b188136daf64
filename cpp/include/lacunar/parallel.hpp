// The only place that makes threads. Threads are made per call and joined before it returns: nothing survives a fork,
// no pool is shared with anyone, and an exception in a worker is rethrown to the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lacunar/interrupt.hpp"
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

// The tasks of a call that are left, and the first error among them.
class TaskQueue {
 public:
  explicit TaskQueue(Offset n_tasks) : n_tasks_(n_tasks) {}

  template <class Space, class Work>
  void take(Space& space, InterruptCheck& check, const Work& work) {
    try {
      for (Offset task; (task = next_.fetch_add(1)) < n_tasks_;) {
        check.look();
        work(space, task, check);
      }
    } catch (const Stopped&) {  // the error is another's
    } catch (...) {
      const std::lock_guard hold(error_lock_);
      if (!error_) error_ = std::current_exception();
      next_ = n_tasks_;
      stopped_ = true;
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  bool has_tasks() const { return next_ < n_tasks_; }
  const std::atomic<bool>& stopped() const { return stopped_; }

 private:
  Offset n_tasks_;
  std::atomic<Offset> next_{0};
  std::atomic<bool> stopped_{false};
  std::exception_ptr error_;
  std::mutex error_lock_;
};

// Calls work(space, task, check) for every task in [0, n_tasks), handing tasks out in increasing order. Every thread
// that takes part has a space = make() of its own; check is asked between tasks and may be asked within them. Where a
// thread does not start, or has no memory for a space, those that did go on. Spaces are made by the caller: a thread
// that throws for want of memory may find none for the exception either, and glibc then aborts.
template <class Make, class Work>
void parallel_tasks(int n_threads, Offset n_tasks, const Make& make, const Work& work) {
  if (n_tasks <= 0) return;
  auto space = make();
  InterruptCheck check;
  const int helpers = static_cast<int>(std::min<Offset>(n_tasks, std::max(n_threads, 1))) - 1;
  if (helpers == 0) {
    for (Offset task = 0; task < n_tasks; ++task) {
      check.look();
      work(space, task, check);
    }
    return;
  }
  TaskQueue queue(n_tasks);
  std::deque<decltype(make())> spaces;
  {
    Team team(helpers);
    try {
      for (int helper = 0; helper < helpers && queue.has_tasks(); ++helper) {
        auto* const own = &spaces.emplace_back(make());
        team.start([&queue, &work, own] {
          InterruptCheck flag(queue.stopped());
          queue.take(*own, flag, work);
        });
      }
    } catch (const std::system_error&) {
      spaces.pop_back();  // some memory is left for those that work
    } catch (const std::bad_alloc&) {
    }
    queue.take(space, check, work);
  }  // joined
  queue.rethrow();
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
