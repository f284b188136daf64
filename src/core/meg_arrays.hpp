// What the bindings of matrix exponentiated gradient share.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "lacunar/meg_sides.hpp"

namespace lacunar::bind {

using Doubles = Array<double>;
using Indices = Array<Index>;

// The array lives as long as the core borrows it, and is let go with the interpreter held.
inline MegSource source_of(const Doubles& table, Offset vertices) {
  if (table.ndim() != 2) throw std::invalid_argument("table is not a matrix");
  if (vertices < 0 || vertices > table.shape(0)) throw std::invalid_argument("table has fewer rows");
  const std::shared_ptr<const void> keeper(new Doubles(table), [](const Doubles* held) {
    const py::gil_scoped_acquire gil;
    delete held;
  });
  return {table.data(), vertices, table.shape(1), keeper};
}

inline MegSource square_of(const Doubles& kernel, Offset vertices) {
  auto source = source_of(kernel, vertices);
  if (vertices > source.leading) throw std::invalid_argument("kernel has fewer columns");
  return source;
}

template <class T>
std::vector<T> vector_of(const Array<T>& a) {
  return {a.data(), a.data() + a.size()};
}

// Classes of the ordinary metaclass, which stubs can name.
inline py::metaclass plain_type() { return py::metaclass(reinterpret_cast<PyObject*>(&PyType_Type)); }

}  // namespace lacunar::bind
