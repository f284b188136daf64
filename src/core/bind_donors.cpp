#include "arrays.hpp"
#include "lacunar/sums/donors.hpp"

namespace lacunar::bind {
namespace {

py::tuple nearest(const Array<double>& ascending, const Array<Offset>& order, const Array<Offset>& sample,
                  const Array<double>& targets, const Array<double>& uniform, Offset k, double reach) {
  const Offset n = ascending.size(), m = targets.size();
  expect_size(order, n, "order");
  expect_size(uniform, m, "uniform");
  if (k < 1 || k > (sample.size() == 0 ? n : sample.size()))
    throw std::invalid_argument("k must be at least 1, and at most the number of values");
  expect_below(order, n, "order");
  expect_below(sample, n, "sample");
  Array<Offset> picks(m);
  Array<bool> far(m);
  {
    const Donors donors{ascending.data(), order.data(), n};
    const double *to = targets.data(), *chance = uniform.data();
    const Offset *drawn = sample.data(), size = sample.size();
    Offset* pick = picks.mutable_data();
    auto* is_far = reinterpret_cast<unsigned char*>(far.mutable_data());
    const Released nogil;
    if (size == 0)
      draw_nearest(donors, to, chance, m, k, reach, pick, is_far);
    else
      draw_nearest_of_sample(donors, drawn, size, to, chance, m, k, reach, pick, is_far);
  }
  return py::make_tuple(picks, far);
}

}  // namespace

void bind_donors(py::module_& m) {
  using py::arg;
  m.def(
      "draw_nearest", &nearest, arg("ascending").noconvert(), arg("order").noconvert(), arg("sample").noconvert(),
      arg("targets").noconvert(), arg("uniform").noconvert(), arg("k"), arg("reach"),
      "For each target one of the k nearest of ascending values, as its entry of order, and whether some of the k lie "
      "beyond reach: then only those within reach count, or the nearest. Of order only entries of sample take part, as "
      "often as they stand there; all of them once where sample is empty.");
}

}  // namespace lacunar::bind
