// py::array <-> views. Exact dtype and C order are demanded, never produced by a cast: the Python door has seen to it.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "lacunar/types.hpp"

namespace lacunar::bind {

namespace py = pybind11;

template <class T>
using Array = py::array_t<T, py::array::c_style>;  // bound with .noconvert(): a wrong dtype is a TypeError

inline void expect_size(const py::array& a, Offset size, const char* name) {
  if (a.size() != size)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(a.size()) + " elements, not " +
                                std::to_string(size));
}

template <class T>
Rows<T> rows_of(const Array<Offset>& offsets, const Array<Index>& indices, const Array<T>& values, Offset n_cols) {
  if (offsets.size() < 1) throw std::invalid_argument("indptr is empty");
  expect_size(indices, values.size(), "indices");
  return {offsets.data(), indices.data(), values.data(), static_cast<Offset>(offsets.size() - 1), n_cols};
}

// A new array owning a copy of what the core made.
template <class T>
Array<T> to_array(const std::vector<T>& made) {
  return Array<T>(static_cast<py::ssize_t>(made.size()), made.data());
}

}  // namespace lacunar::bind
