#include <pybind11/pybind11.h>

#include <stdexcept>
#include <thread>

#include "lacunar/kernels.hpp"

namespace lacunar::bind {

namespace py = pybind11;

void bind_system(py::module_& m) {
  if (const char* complaint = isa_complaint()) throw std::runtime_error(complaint);  // said at import
  m.attr("__version__") = LACUNAR_VERSION;
  m.def("build_info", [] {
    py::dict info;
#if defined(__clang__)
    info["compiler"] = "clang " __clang_version__;
#elif defined(__GNUC__)
    info["compiler"] = "gcc " __VERSION__;
#elif defined(_MSC_VER)
    info["compiler"] = "msvc " + std::to_string(_MSC_VER);
#endif
    info["instruction set"] = isa_name();
    info["hardware threads"] = static_cast<int>(std::thread::hardware_concurrency());
    return info;
  }, "Compiler and machine facts, for lacunar.show_config().");
}

}  // namespace lacunar::bind
