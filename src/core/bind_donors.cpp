#include "arrays.hpp"
#include "lacunar/sums/donors.hpp"

namespace lacunar::bind {
namespace {

py::tuple nearest(const Array<double>& ascending, const Array<double>& targets, const Array<double>& uniform, Offset k,
                  double reach) {
  const Offset n = ascending.size(), m = targets.size();
  expect_size(uniform, m, "uniform");
  if (k < 1 || k > n) throw std::invalid_argument("k must be at least 1, and at most the number of values");
  Array<Offset> places(m);
  Array<bool> far(m);
  {
    const double *values = ascending.data(), *to = targets.data(), *chance = uniform.data();
    Offset* place = places.mutable_data();
    auto* is_far = reinterpret_cast<unsigned char*>(far.mutable_data());
    const Released nogil;
    draw_nearest(values, n, to, chance, m, k, reach, place, is_far);
  }
  return py::make_tuple(places, far);
}

}  // namespace

void bind_donors(py::module_& m) {
  using py::arg;
  m.def("draw_nearest", &nearest, arg("ascending").noconvert(), arg("targets").noconvert(), arg("uniform").noconvert(),
        arg("k"), arg("reach"),
        "For each target the place of one of the k nearest of ascending values, and whether some of the k lie beyond "
        "reach: then only those within reach count, or the nearest.");
}

}  // namespace lacunar::bind
