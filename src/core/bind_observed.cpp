#include "either.hpp"
#include "lacunar/observed/observed.hpp"

namespace lacunar::bind {
namespace {

const char* name_of(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::offsets_decrease: return "offsets_decrease";
    case Status::index_negative: return "index_negative";
    case Status::index_too_large: return "index_too_large";
    case Status::index_unsorted: return "index_unsorted";
    case Status::index_repeated: return "index_repeated";
    case Status::not_finite: return "not_finite";
  }
  return "unknown";
}

template <class T>
py::object fault_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, Offset n_cols) {
  const auto rows = unchecked_rows_of(indptr, indices, values, n_cols);
  Failure failure;
  {
    const Released nogil;
    failure = find_fault(rows, static_cast<Offset>(values.size()));
  }
  if (failure.ok()) return py::none();
  return py::make_tuple(name_of(failure.status), failure.row, failure.position);
}

py::tuple columns_of(const Array<Offset>& indptr, const Array<Index>& indices, Offset n_cols) {
  if (indptr.size() < 1) throw std::invalid_argument("indptr is empty");
  const Rows<double> rows{indptr.data(), indices.data(), nullptr, static_cast<Offset>(indptr.size() - 1),
                          int_of(n_cols, "n_cols")};
  expect_offsets(rows.offsets, rows.n_rows, static_cast<Offset>(indices.size()), "indptr");
  Array<Offset> offsets(n_cols + 1), row_of(indices.size()), positions(indices.size());
  {
    Offset *o = offsets.mutable_data(), *r = row_of.mutable_data(), *p = positions.mutable_data();
    const Released nogil;
    transpose(rows, o, r, p);
  }
  return py::make_tuple(offsets, row_of, positions);
}

}  // namespace

void bind_observed(py::module_& m) {
  using py::arg;
  const auto indptr = arg("indptr").noconvert();
  const auto indices = arg("indices").noconvert();
  const auto values = arg("values").noconvert();
  m.def("find_fault", either(&fault_of<float>, &fault_of<double>), indptr, indices, values, arg("n_cols"),
        "None, or (kind, row, position) of the first entry that breaks the observed-entries contract.");
  m.def("column_view", &columns_of, indptr, indices, arg("n_cols"),
        "(offsets, rows, positions): the entries by column, rows ascending inside each.");
}

}  // namespace lacunar::bind
