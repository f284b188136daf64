#include "arrays.hpp"
#include "lacunar/blocks.hpp"

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
  const Precision asked = precision_of(precision);
  BlockHead head{};
  Offset size = 0;
  {
    const py::gil_scoped_release nogil;
    head = plan_block(rows, asked);
    size = block_size(head, n_cols);
  }
  Bytes made(size);
  std::uint8_t* to = made.mutable_data();
  Loss loss;
  {
    const py::gil_scoped_release nogil;
    loss = encode_block(rows, head, to);
  }
  return py::make_tuple(made, loss.size, loss.lost);
}

template <class T>
py::tuple decoded_as(const Bytes& data, Offset n_cols, Offset n_rows, Offset n_entries) {
  if (reinterpret_cast<std::uintptr_t>(data.data()) % 8 != 0)
    throw std::invalid_argument("a block must begin at a multiple of eight bytes");
  BlockHead head{};
  if (const char* fault = read_head<T>(data.data(), data.size(), n_cols, head)) throw py::value_error(fault);
  if (head.n_rows != n_rows || head.n_entries != n_entries)
    throw py::value_error("its head tells other numbers of rows and entries than the table of blocks");
  Array<Offset> offsets(n_rows + 1);
  Array<Index> columns(n_entries);
  Array<T> values(n_entries);
  Offset* to_offsets = offsets.mutable_data();
  Index* to_columns = columns.mutable_data();
  T* to_values = values.mutable_data();
  const std::uint8_t* from = data.data();
  BlockFault fault;
  {
    const py::gil_scoped_release nogil;
    fault = decode_block(from, head, n_cols, to_offsets, to_columns, to_values);
  }
  if (fault.what) throw py::value_error("its row " + std::to_string(fault.row) + " " + fault.what);
  return py::make_tuple(offsets, columns, values);
}

py::tuple decoded(const Bytes& data, Offset n_cols, Offset n_rows, Offset n_entries, bool single) {
  int_of(n_cols, "n_cols");
  if (n_rows < 0 || n_entries < 0 || n_rows > data.size() || n_entries > data.size())
    throw py::value_error("it is shorter than its numbers of rows and entries");
  return single ? decoded_as<float>(data, n_cols, n_rows, n_entries)
                : decoded_as<double>(data, n_cols, n_rows, n_entries);
}

}  // namespace

void bind_blocks(py::module_& m) {
  using py::arg;
  const auto encode = [&](auto* function, const char* text) {
    m.def("encode_block", function, arg("indptr").noconvert(), arg("indices").noconvert(), arg("values").noconvert(),
          arg("n_cols"), arg("precision"), text);
  };
  encode(&encoded<float>, "(bytes, sum of squares, of what was lost): rows as a block of a file.");
  encode(&encoded<double>, "");
  m.def("decode_block", &decoded, arg("data").noconvert(), arg("n_cols"), arg("n_rows"), arg("n_entries"),
        arg("single"), "(indptr, indices, values) of a block, all of it checked; ValueError says what is wrong.");
}

}  // namespace lacunar::bind
