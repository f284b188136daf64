#include <pybind11/pybind11.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gil.hpp"
#include "lacunar/parallel/interrupt.hpp"

namespace lacunar::bind {

namespace py = pybind11;

namespace {

// Turns at one model: threads that read it go together, a thread that changes it goes alone, in the order in which they
// came, so that neither a stream that never pauses nor questions that never end keep the others out. A thread that has a
// turn may take another one within it. Nothing waits for the interpreter while it has mutex_, which may therefore be
// locked with the interpreter held.
class ModelTurns {
 public:
  void enter(bool changes) {
    Waiting me(std::this_thread::get_id(), changes);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (within(me)) return;
      reading_.reserve(reading_.size() + queue_.size() + 1);  // admitting allocates nothing
      queue_.push_back(&me);
      admit();
      if (me.admitted) return;
    }
    wait(me);
  }

  void leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    leave_locked(std::this_thread::get_id());
  }

  // Whether another thread is changing the model, without waiting: a thread that has mutex_ may be about to.
  bool changed_elsewhere() {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    return !lock.owns_lock() || (depth_ > 0 && changer_ != std::this_thread::get_id());
  }

 private:
  struct Waiting {
    Waiting(std::thread::id thread, bool alone) : who(thread), changes(alone) {}
    std::thread::id who;
    bool changes, admitted = false;
    std::condition_variable signal;
  };
  struct Reader {
    std::thread::id who;
    int depth;
  };

  Reader* reader(std::thread::id who) {
    for (Reader& one : reading_)
      if (one.who == who) return &one;
    return nullptr;
  }

  // Whether this thread has a turn already, which then is one deeper.
  bool within(const Waiting& me) {
    if (depth_ > 0 && changer_ == me.who) {
      ++depth_;
      return true;
    }
    Reader* mine = reader(me.who);
    if (mine == nullptr) return false;
    if (me.changes)
      throw std::runtime_error(
          "a model must not be changed by what it calls while it answers; this thread called a method that learns within "
          "one that asks. Call it before or after.");
    ++mine->depth;
    return true;
  }

  // Turns for those who came first, as far as they may go together.
  void admit() {
    while (!queue_.empty() && depth_ == 0) {
      Waiting* next = queue_.front();
      if (next->changes && !reading_.empty()) return;
      if (next->changes) {
        changer_ = next->who;
        depth_ = 1;
      } else {
        reading_.push_back({next->who, 1});
      }
      queue_.erase(queue_.begin());
      next->admitted = true;
      next->signal.notify_one();
    }
  }

  void leave_locked(std::thread::id who) {
    if (depth_ > 0 && changer_ == who) {
      if (--depth_ == 0) admit();
      return;
    }
    Reader* mine = reader(who);
    if (mine == nullptr || --mine->depth > 0) return;
    *mine = reading_.back();
    reading_.pop_back();
    admit();
  }

  // Until the turn has come, or Ctrl-C.
  void wait(Waiting& me) {
    const Released nogil;
    std::unique_lock<std::mutex> lock(mutex_);
    InterruptCheck interrupt;
    while (!me.admitted) {
      me.signal.wait_for(lock, std::chrono::milliseconds(100));
      if (me.admitted) return;
      lock.unlock();  // asking waits for the interpreter
      try {
        interrupt.look();
      } catch (...) {
        give_up(me);
        throw;
      }
      lock.lock();
    }
  }

  void give_up(Waiting& me) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (me.admitted) return leave_locked(me.who);
    std::erase(queue_, &me);
    admit();
  }

  std::mutex mutex_;
  std::vector<Waiting*> queue_;
  std::vector<Reader> reading_;
  std::thread::id changer_;  // while depth_ > 0
  int depth_ = 0;
};

// What `with` takes a turn by.
struct ModelTurn {
  std::shared_ptr<ModelTurns> turns;
  bool changes;
};

}  // namespace

void bind_turns(py::module_& m) {
  py::class_<ModelTurn>(m, "ModelTurn", py::metaclass(reinterpret_cast<PyObject*>(&PyType_Type)),
                   "A turn at a model, for `with`.")
      .def("__enter__", [](const ModelTurn& turn) { turn.turns->enter(turn.changes); })
      .def("__exit__",
           [](const ModelTurn& turn, const py::object&, const py::object&, const py::object&) { turn.turns->leave(); })
      .def("changed_elsewhere", [](const ModelTurn& turn) { return turn.turns->changed_elsewhere(); });
  m.def(
      "model_turns",
      [] {
        const auto turns = std::make_shared<ModelTurns>();
        return py::make_tuple(ModelTurn{turns, false}, ModelTurn{turns, true});
      },
      "Turns at one model: for threads that read it, and for one that changes it.");
}

}  // namespace lacunar::bind
