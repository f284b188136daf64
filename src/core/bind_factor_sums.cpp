#include "either.hpp"
#include "lacunar/sums/factor_sums.hpp"

namespace lacunar::bind {
namespace {

constexpr int kMostFactors = 1 << 15;  // whose triangle is numbered in 31 bits

template <class T>
Offset sums_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
               const Array<double>& model, int k, double noise, Array<double> sums, Array<double> moment,
               int n_threads) {
  if (model.ndim() != 2 || k < 1 || k > kMostFactors)
    throw std::invalid_argument("model must have two dimensions, k must be positive and at most " +
                                std::to_string(kMostFactors));
  const Offset n_cols = model.shape(0);
  const auto rows = rows_of(indptr, indices, values, n_cols);
  expect_size(model, {n_cols, factor_width(k)}, "model");
  expect_size(sums, {n_cols, factor_sums_width(k)}, "sums");
  expect_size(moment, static_cast<Offset>(k) * (k + 1) / 2, "moment");
  const double* from = model.data();
  double *to = sums.mutable_data(), *codes = moment.mutable_data();
  const Released nogil;
  return factor_sums(rows, from, k, noise, to, codes, n_threads);
}

}  // namespace

void bind_factor_sums(py::module_& m) {
  using py::arg;
  m.def("factor_sums", either(&sums_of<float>, &sums_of<double>), arg("indptr").noconvert(), arg("indices").noconvert(),
        arg("values").noconvert(), arg("model").noconvert(), arg("k"), arg("noise"), arg("sums").noconvert(),
        arg("moment").noconvert(), arg("n_threads"),
        "Adds an expectation step's sums by column, and of codes; the number of rescued rows.");
}

}  // namespace lacunar::bind
