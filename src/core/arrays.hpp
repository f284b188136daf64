// py::array <-> views. Exact dtype, C order and alignment are demanded, never produced by a cast: the Python door has
// seen to it. Shapes, sizes and what else costs less than the call are checked here; that columns ascend inside their
// rows and lie below n_cols is checked once, where an `Observed` is made, which nobody can write to afterwards.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gil.hpp"
#include "lacunar/types.hpp"

namespace lacunar::bind {

namespace py = pybind11;

// A wrong dtype or order is a TypeError, as an argument of no overload is; bound with .noconvert().
template <class T>
class Array : public py::array_t<T, py::array::c_style> {
 public:
  using Base = py::array_t<T, py::array::c_style>;
  using Base::Base;

  static bool check_(py::handle h) {
    if (!Base::check_(h)) return false;
    if (!py::detail::check_flags(h.ptr(), py::detail::npy_api::NPY_ARRAY_ALIGNED_))
      throw std::invalid_argument("every array must be aligned; one of the arguments is not. Pass a copy of it.");
    return true;
  }
};

inline Offset product_of(std::initializer_list<Offset> sizes) {
  Offset product = 1;
  for (const Offset size : sizes) {
    if (size < 0 || (size > 0 && product > std::numeric_limits<Offset>::max() / size))
      throw std::invalid_argument("sizes must be at least 0 and their product must fit 64 bits");
    product *= size;
  }
  return product;
}

inline void expect_size(const py::array& a, Offset size, const char* name) {
  if (a.size() != size)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(a.size()) + " elements, not " +
                                std::to_string(size));
}

inline void expect_size(const py::array& a, std::initializer_list<Offset> shape, const char* name) {
  expect_size(a, product_of(shape), name);
}

inline void expect_matrix(const py::array& a, const char* name) {
  if (a.ndim() != 2) throw std::invalid_argument(std::string(name) + " is not a matrix");
}

// Every element lies in [0, end).
template <class N>
void expect_below(const Array<N>& numbers, Offset end, const char* name) {
  const N* at = numbers.data();
  for (py::ssize_t k = 0; k < numbers.size(); ++k)
    if (at[k] < 0 || at[k] >= end)
      throw std::invalid_argument(std::string(name) + " must hold numbers from 0 to " + std::to_string(end - 1) +
                                  "; got " + std::to_string(at[k]) + " at place " + std::to_string(k));
}

inline int int_of(Offset number, const char* name) {
  if (number < 0 || number > std::numeric_limits<int>::max())
    throw std::invalid_argument(std::string(name) + " must be a number of 31 bits; got " + std::to_string(number));
  return static_cast<int>(number);
}

// Offsets begin within `entries` entries, never fall, and end there. O(rows).
inline void expect_offsets(const Offset* offsets, Offset rows, Offset entries, const char* name) {
  bool sound = offsets[0] >= 0 && offsets[rows] <= entries;
  for (Offset k = 0; k < rows; ++k) sound = sound && offsets[k] <= offsets[k + 1];
  if (!sound)
    throw std::invalid_argument(std::string(name) + " must rise from 0 or more to the number of entries at most");
}

// As they come: `find_fault` is what says whether they keep the contract.
template <class T>
Rows<T> unchecked_rows_of(const Array<Offset>& offsets, const Array<Index>& indices, const Array<T>& values,
                          Offset n_cols) {
  if (offsets.size() < 1) throw std::invalid_argument("indptr is empty");
  expect_size(indices, values.size(), "indices");
  int_of(n_cols, "n_cols");
  return {offsets.data(), indices.data(), values.data(), static_cast<Offset>(offsets.size() - 1), n_cols};
}

template <class T>
Rows<T> rows_of(const Array<Offset>& offsets, const Array<Index>& indices, const Array<T>& values, Offset n_cols) {
  const auto rows = unchecked_rows_of(offsets, indices, values, n_cols);
  expect_offsets(rows.offsets, rows.n_rows, static_cast<Offset>(indices.size()), "indptr");
  return rows;
}

template <class T>
Offset longest_of(const Rows<T>& rows) {
  Offset longest = 0;
  for (Offset i = 0; i < rows.n_rows; ++i) longest = std::max(longest, rows.offsets[i + 1] - rows.offsets[i]);
  return longest;
}

// A new array of a copy of what the core made.
template <class T>
Array<T> to_array(const std::vector<T>& values) {
  return Array<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// A new array that owns what the core made, without a copy.
template <class T>
Array<T> to_array(std::vector<T>&& values) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  const auto size = static_cast<py::ssize_t>(held->size());
  const T* data = held->data();
  const py::capsule owner(held.release(), [](void* memory) { delete static_cast<std::vector<T>*>(memory); });
  return Array<T>(size, data, owner);
}

// Classes of the ordinary metaclass, which stubs can name.
inline py::metaclass plain_type() { return py::metaclass(reinterpret_cast<PyObject*>(&PyType_Type)); }

}  // namespace lacunar::bind

namespace pybind11::detail {

template <class T>
struct handle_type_name<lacunar::bind::Array<T>> : handle_type_name<typename lacunar::bind::Array<T>::Base> {};

}  // namespace pybind11::detail
