#include "either.hpp"
#include "lacunar/blocks/blocks.hpp"

namespace lacunar::bind {
namespace {

using Bytes = Array<std::uint8_t>;

Precision precision_of(int number) {
  if (number < 0 || number > static_cast<int>(Precision::bytes)) throw std::invalid_argument("precision is unknown");
  return static_cast<Precision>(number);
}

template <class T>
py::tuple encoded(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, Offset n_cols,
                  int precision) {
  const auto rows = rows_of(indptr, indices, values, n_cols);
  const Precision level = precision_of(precision);
  BlockHead head{};
  Offset size = 0;
  {
    const Released nogil;
    head = plan_block(rows, level);
    size = block_size(head, n_cols);
  }
  Bytes bytes(size);
  std::uint8_t* to = bytes.mutable_data();
  Loss loss;
  {
    const Released nogil;
    loss = encode_block(rows, head, to);
  }
  return py::make_tuple(bytes, loss.size, loss.lost);
}

template <class T>
void decoded(const Bytes& data, Offset n_cols, Array<Offset> indptr, Array<Index> indices, Array<T> values) {
  int_of(n_cols, "n_cols");
  expect_size(indices, values.size(), "indices");
  if (indptr.size() == 0 || indptr.size() - 1 > data.size() || values.size() > data.size())
    throw py::value_error("it is shorter than its numbers of rows and entries");
  if (reinterpret_cast<std::uintptr_t>(data.data()) % 8 != 0)
    throw std::invalid_argument("a block must begin at a multiple of eight bytes");
  BlockHead head{};
  if (const char* fault = read_head<T>(data.data(), data.size(), n_cols, head)) throw py::value_error(fault);
  if (head.n_rows != indptr.size() - 1 || head.n_entries != values.size())
    throw py::value_error("its head tells other numbers of rows and entries than the table of blocks");
  Offset* to_offsets = indptr.mutable_data();
  Index* to_columns = indices.mutable_data();
  T* to_values = values.mutable_data();
  const std::uint8_t* from = data.data();
  BlockFault fault;
  {
    const Released nogil;
    fault = decode_block(from, head, n_cols, to_offsets, to_columns, to_values);
  }
  if (fault.what) throw py::value_error("its row " + std::to_string(fault.row) + " " + fault.what);
}

}  // namespace

void bind_blocks(py::module_& m) {
  using py::arg;
  m.def("encode_block", either(&encoded<float>, &encoded<double>), arg("indptr").noconvert(),
        arg("indices").noconvert(), arg("values").noconvert(), arg("n_cols"), arg("precision"),
        "(bytes, sum of squares, of what was lost): rows as a block of a file.");
  m.def("decode_block", either(&decoded<float>, &decoded<double>), arg("data").noconvert(), arg("n_cols"),
        arg("indptr").noconvert(), arg("indices").noconvert(), arg("values").noconvert(),
        "A block, all of it checked, written to arrays of its size; ValueError says what is wrong.");
}

}  // namespace lacunar::bind
