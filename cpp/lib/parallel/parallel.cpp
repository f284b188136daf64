#include "lacunar/parallel/parallel.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>

namespace lacunar {
namespace {

// The tasks of a call that are left, and the first error among them.
class TaskQueue {
 public:
  explicit TaskQueue(Offset n_tasks) : n_tasks_(n_tasks) {}

  void take(Worker& worker, InterruptCheck& check) {
    try {
      for (Offset task; (task = next_.fetch_add(1)) < n_tasks_;) {
        check.look();
        worker.run(task, check);
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

}  // namespace

void run_tasks(int n_threads, Offset n_tasks, NewWorker worker, const void* make, const void* work) {
  if (n_tasks <= 0) return;
  const auto own = worker(make, work);
  InterruptCheck check;
  const int helpers = static_cast<int>(std::min<Offset>(n_tasks, std::max(n_threads, 1))) - 1;
  if (helpers == 0) {
    for (Offset task = 0; task < n_tasks; ++task) {
      check.look();
      own->run(task, check);
    }
    return;
  }
  TaskQueue queue(n_tasks);
  std::vector<std::unique_ptr<Worker>> workers;
  {
    Team team(helpers);
    try {
      for (int helper = 0; helper < helpers && queue.has_tasks(); ++helper) {
        workers.push_back(worker(make, work));
        team.start([&queue, helping = workers.back().get()] {
          InterruptCheck flag(queue.stopped());
          queue.take(*helping, flag);
        });
      }
    } catch (const std::system_error&) {
      workers.pop_back();  // some memory is left for those that work
    } catch (const std::bad_alloc&) {
    }
    queue.take(*own, check);
  }  // joined
  queue.rethrow();
}

}  // namespace lacunar
