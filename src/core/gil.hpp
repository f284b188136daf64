// The interpreter, let go of and taken back: the one place of the bindings that does either.
//
// When the process ends, CPython before 3.14 ends a daemon thread that asks for the interpreter by unwinding its stack,
// which aborts the process in the first destructor on the way. Such a thread sleeps here instead, until the process is
// gone, as CPython 3.14 itself does.
#pragma once

#include <pybind11/pybind11.h>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

#include <chrono>
#include <thread>
#include <utility>

namespace lacunar::bind {

[[noreturn]] inline void sleep_until_the_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Only that unwinding comes out of this function of C.
inline void take_interpreter(PyThreadState* thread) {
  try {
    PyEval_RestoreThread(thread);
  } catch (...) {
    sleep_until_the_end();
  }
}

// What runs code of Python's in the middle of a call of the core: that code lets go of the interpreter, too.
template <class F>
decltype(auto) into_python(F&& call) {
#ifdef __GLIBCXX__
  try {
    return std::forward<F>(call)();
  } catch (const abi::__forced_unwind&) {
    sleep_until_the_end();
  }
#else
  return std::forward<F>(call)();
#endif
}

// The state of a thread that let go of the interpreter; null while it has it.
inline PyThreadState*& released_thread() {
  static thread_local PyThreadState* thread = nullptr;
  return thread;
}

// Without the interpreter, for as long as it lives. In threads that have it.
class Released {
 public:
  Released() { released_thread() = PyEval_SaveThread(); }
  ~Released() { take_interpreter(std::exchange(released_thread(), nullptr)); }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
};

// With the interpreter, for as long as it lives. In threads that have it, or let go of it by `Released`.
class Acquired {
 public:
  Acquired() : took_(released_thread() != nullptr) {
    if (took_) take_interpreter(std::exchange(released_thread(), nullptr));
  }
  ~Acquired() {
    if (took_) released_thread() = PyEval_SaveThread();
  }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  bool took_;
};

}  // namespace lacunar::bind
