#include <pybind11/pybind11.h>

#include <thread>

namespace lacunar::bind {

namespace py = pybind11;

void bind_system(py::module_& m) {
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
    info["hardware_threads"] = static_cast<int>(std::thread::hardware_concurrency());
    return info;
  }, "Compiler and machine facts, for lacunar.show_config().");
}

}  // namespace lacunar::bind
