#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "lacunar/meg/meg.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "meg_arrays.hpp"

namespace lacunar::bind {
namespace {

MegOperator::Apply apply_of(const py::function& apply, Offset n) {
  const std::shared_ptr<const py::function> held(new py::function(apply), [](const py::function* f) {
    const Acquired gil;
    delete f;
  });
  return [held, n](const double* x, double* out) {
    const Acquired gil;
    Doubles vector(n);
    std::copy_n(x, n, vector.mutable_data());
    const auto product = py::cast<py::array_t<double, py::array::c_style | py::array::forcecast>>(
        into_python([&] { return (*held)(vector); }));
    expect_size(product, n, "K x");
    std::copy_n(product.data(), n, out);
  };
}

class DenseSide final : public Side {
 public:
  DenseSide(const Doubles& kernel, Offset vertices) : Side(std::make_shared<MegDense>(square_of(kernel, vertices))) {}
};

class FactorSide final : public Side {
 public:
  FactorSide(const Doubles& phi, Offset vertices, double own, double constant)
      : Side(std::make_shared<MegFactor>(source_of(phi, vertices), own, constant)) {}
};

class OperatorSide final : public Side {
 public:
  OperatorSide(const Doubles& diagonal, const py::function& apply)
      : Side(std::make_shared<MegOperator>(vector_of(diagonal), apply_of(apply, int_of(diagonal.size(), "vertices")))) {
  }
};

void grow(const Side& side, MegSource source) {
  if (!side.locked([&](MegSide& held) { return held.grow(std::move(source)); }))
    throw std::invalid_argument("a side may gain vertices; it loses none, and features keep their columns");
}

void bind_sides(py::module_& m) {
  using py::arg;
  const auto plain = plain_type();
  py::class_<Side, std::shared_ptr<Side>>(m, "MegSide", plain, "Half a kernel over the vertices that take part.")
      .def_property_readonly(
          "vertices", [](const Side& side) { return side.locked([](MegSide& held) { return held.vertices(); }); })
      .def_property_readonly("seats", [](const Side& side) {
        return to_array(side.locked([](MegSide& held) { return std::vector<Index>(held.vertex_at()); }));
      });
  py::class_<DenseSide, Side, std::shared_ptr<DenseSide>>(m, "MegDense", plain, "A kernel given whole.")
      .def(py::init<const Doubles&, Offset>(), arg("kernel").noconvert(), arg("vertices"))
      .def(
          "grow", [](DenseSide& side, const Doubles& kernel, Offset n) { grow(side, square_of(kernel, n)); },
          arg("kernel").noconvert(), arg("vertices"));
  py::class_<FactorSide, Side, std::shared_ptr<FactorSide>>(m, "MegFactor", plain, "Phi Phi^T + own I + constant 11^T.")
      .def(py::init<const Doubles&, Offset, double, double>(), arg("phi").noconvert(), arg("vertices"), arg("own"),
           arg("constant"))
      .def(
          "grow", [](FactorSide& side, const Doubles& phi, Offset n) { grow(side, source_of(phi, n)); },
          arg("phi").noconvert(), arg("vertices"));
  py::class_<OperatorSide, Side, std::shared_ptr<OperatorSide>>(m, "MegOperator", plain,
                                                                "A kernel known by its products.")
      .def(py::init<const Doubles&, const py::function&>(), arg("diagonal").noconvert(), arg("apply"));
}

}  // namespace

void bind_meg_parts(py::module_& m) {
  using py::arg;
  bind_sides(m);
  m.attr("MEG_OK") = static_cast<int>(MegStatus::ok);
  m.attr("MEG_NOT_FINITE") = static_cast<int>(MegStatus::not_finite);
  m.attr("MEG_NOT_CONVERGED") = static_cast<int>(MegStatus::not_converged);
}

}  // namespace lacunar::bind
