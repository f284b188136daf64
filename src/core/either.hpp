// One binding for a function of float and the same of double: what pybind11 makes of a binding takes a tenth of a
// second to compile, whatever the function is.
#pragma once

#include <pybind11/stl.h>

#include <optional>
#include <type_traits>

#include "arrays.hpp"

namespace lacunar::bind {

// An array of either.
class Numbers : public py::array {
 public:
  using py::array::array;

  static bool check_(py::handle h) { return Array<float>::check_(h) || Array<double>::check_(h); }
};

template <class A>
struct Typed {
  A held;
  operator A&() { return held; }
};

// As it came, where the two functions do not differ in it.
template <class A, class G>
decltype(auto) typed(G& argument) {
  using Wanted = std::remove_cvref_t<A>;
  if constexpr (std::is_same_v<Wanted, std::remove_const_t<G>>) {
    return (argument);
  } else if constexpr (std::is_same_v<G, const Numbers>) {
    if (!Wanted::check_(argument)) throw py::type_error("arrays of numbers must be all float32 or all float64");
    return Typed<Wanted>{py::reinterpret_borrow<Wanted>(argument)};
  } else {
    Typed<Wanted> optional{};
    if (argument) optional.held = typed<typename Wanted::value_type>(*argument).held;
    return optional;
  }
}

template <class G>
bool is_single(const G& argument) {
  if constexpr (std::is_same_v<G, Numbers>)
    return Array<float>::check_(argument);
  else
    return false;
}

template <class A>
using NumbersLike = std::conditional_t<std::is_base_of_v<py::array, std::remove_cvref_t<A>>, const Numbers&,
                                       const std::optional<Numbers>&>;
template <class A, class B>
using Either = std::conditional_t<std::is_same_v<A, B>, A, NumbersLike<A>>;

// Their first arrays that differ say which of the two is called.
template <class R, class... A, class... B>
auto either(R (*single)(A...), R (*whole)(B...)) {
  return [single, whole](Either<A, B>... argument) -> R {
    return (is_single(argument) || ...) ? single(typed<A>(argument)...) : whole(typed<B>(argument)...);
  };
}

}  // namespace lacunar::bind

namespace pybind11::detail {

template <>
struct handle_type_name<lacunar::bind::Numbers> {
  static constexpr auto name = const_name("numpy.NDArray[numpy.float32 | numpy.float64]");
};

}  // namespace pybind11::detail
