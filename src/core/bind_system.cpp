#include <pybind11/pybind11.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "gil.hpp"
#include "lacunar/kernels.hpp"
#include "lacunar/parallel/interrupt.hpp"

namespace lacunar::bind {

namespace py = pybind11;

namespace {

// Signals are handled by Python's main thread alone: others do not ask for the interpreter, which may be closing down.
std::atomic<unsigned long> main_thread{0};

void note_main_thread() {
  main_thread = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
}

void raise_if_interrupted() {
  if (PyThread_get_thread_ident() != main_thread) return;
  const Acquired gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// A fork makes the thread that called it the main one.
void watch_for_interrupts() {
  note_main_thread();
  const auto os = py::module_::import("os");
  if (py::hasattr(os, "register_at_fork")) {
    using py::literals::operator""_a;
    os.attr("register_at_fork")("after_in_child"_a = py::cpp_function(&note_main_thread));
  }
  set_interrupt_probe(&raise_if_interrupted);
}

}  // namespace

void bind_system(py::module_& m) {
  if (const char* complaint = isa_complaint()) throw std::runtime_error(complaint);  // said at import
  watch_for_interrupts();
  m.attr("__version__") = LACUNAR_VERSION;
  m.def(
      "build_info",
      [] {
        py::dict info;
#if defined(__clang__)
        info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
        info["compiler"] = "gcc " __VERSION__;
#elif defined(_MSC_VER)
        info["compiler"] = "msvc " + std::to_string(_MSC_VER);
#endif
        info["instruction set"] = isa_name();
        info["instruction set found"] = isa_found();
        info["hardware threads"] = static_cast<int>(std::thread::hardware_concurrency());
        return info;
      },
      "Compiler and machine facts, for lacunar.show_config().");
  m.def(
      "isa_of",
      [](std::uint32_t leaf1_ecx, std::uint32_t leaf7_ebx, std::uint32_t leaf7_ecx, std::uint32_t extended_ecx,
         std::uint64_t xcr0) { return isa_of({leaf1_ecx, leaf7_ebx, leaf7_ecx, extended_ecx, xcr0}); },
      py::arg("leaf1_ecx"), py::arg("leaf7_ebx"), py::arg("leaf7_ecx"), py::arg("extended_ecx"), py::arg("xcr0"),
      "The instruction set that a processor of which cpuid and xgetbv say so can run.");
}

}  // namespace lacunar::bind
