// The one way in which options and states reach the core: a dict whose keys are the fields of a struct, all of them.
// Numbers and words are converted; arrays are demanded as they are, like every other array.
#pragma once

#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "arrays.hpp"

namespace lacunar::bind {

inline py::object entry_of(const py::dict& options, const char* name) {
  if (!options.contains(name)) throw py::key_error(std::string("the options lack ") + name);
  return options[name];
}

inline py::type_error wrong_type(const char* name) { return py::type_error(std::string(name) + " has another type"); }

template <class V>
V option(const py::dict& options, const char* name) {
  try {
    return entry_of(options, name).cast<V>();
  } catch (const py::cast_error&) {
    throw wrong_type(name);
  }
}

template <class T>
Array<T> array_option(const py::dict& options, const char* name) {
  const py::object entry = entry_of(options, name);
  if (!Array<T>::check_(entry)) throw wrong_type(name);
  return py::reinterpret_borrow<Array<T>>(entry);
}

template <class T>
std::optional<Array<T>> optional_array(const py::dict& options, const char* name) {
  if (entry_of(options, name).is_none()) return std::nullopt;
  return array_option<T>(options, name);
}

}  // namespace lacunar::bind
