#include <pybind11/stl.h>

#include "lacunar/meg/meg.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "meg_arrays.hpp"

namespace lacunar::bind {
namespace {

// One engine, whose sides are at work when it is.
class Engine {
 public:
  Engine(std::unique_ptr<MegForm> form, Busy rows, Busy cols, double log_scale, double tol)
      : rows_(std::move(rows)), cols_(std::move(cols)), meg_(std::move(form), log_scale, tol) {}

  template <class F>
  auto locked(F&& call) {
    const Released nogil;
    const AtWork of_rows(rows_), of_cols(cols_);
    return call(meg_);
  }

 private:
  Busy rows_, cols_;
  Meg meg_;
};

void expect_pair(Meg& meg, Index i, Index j) {
  if (!meg.form().knows(i, j)) throw std::out_of_range("no such pair");
}

// Pairs by copies: what was checked cannot be changed by another thread while the interpreter is released.
struct Pairs {
  std::vector<Index> i, j;

  Pairs(const Indices& at_i, const Indices& at_j) : i(vector_of(at_i)), j(vector_of(at_j)) {
    expect_size(at_j, at_i.size(), "j");
  }
  Offset count() const { return static_cast<Offset>(i.size()); }
  void expect_in(Meg& meg) const {
    for (std::size_t t = 0; t < i.size(); ++t) expect_pair(meg, i[t], j[t]);
  }
};

std::unique_ptr<Engine> with_kernels(const std::shared_ptr<Side>& rows, const std::shared_ptr<Side>& cols,
                                     double log_scale, double tol) {
  auto of_rows = rows->give(), of_cols = cols->give();
  return std::make_unique<Engine>(std::make_unique<MegKernelForm>(std::move(of_rows), std::move(of_cols)), rows->busy(),
                                  cols->busy(), log_scale, tol);
}

std::unique_ptr<Engine> with_features(const Doubles& rows, Offset n_rows, const Doubles& cols, Offset n_cols,
                                      double log_scale, double tol) {
  auto of_rows = source_of(rows, n_rows), of_cols = source_of(cols, n_cols);
  const Offset d_rows = of_rows.leading, d_cols = of_cols.leading;
  return std::make_unique<Engine>(
      std::make_unique<MegFeatureForm>(std::move(of_rows), d_rows, std::move(of_cols), d_cols),
      std::make_shared<std::atomic<bool>>(false), std::make_shared<std::atomic<bool>>(false), log_scale, tol);
}

py::tuple answer_of(const MegAnswer& a) {
  return py::make_tuple(static_cast<int>(a.status), a.log_score, a.positive, a.update, a.steps);
}

py::tuple value(Engine& engine, Index i, Index j) {
  return answer_of(engine.locked([&](Meg& meg) {
    expect_pair(meg, i, j);
    return meg.value(i, j);
  }));
}

py::tuple decide(Engine& engine, Index i, Index j, double y, double gamma, bool strict) {
  return answer_of(engine.locked([&](Meg& meg) {
    expect_pair(meg, i, j);
    return meg.decide(i, j, {y, gamma, strict});
  }));
}

// log(y_bar + 1) of pairs one by one; the first that failed, or -1.
py::tuple values(Engine& engine, const Indices& i, const Indices& j, Doubles out) {
  const Pairs pairs(i, j);
  expect_size(out, pairs.count(), "out");
  double* to = out.mutable_data();
  MegAnswer answer;
  const Offset failed = engine.locked([&](Meg& meg) -> Offset {
    pairs.expect_in(meg);
    InterruptCheck check;
    for (Offset t = 0; t < pairs.count(); ++t, check.look()) {
      answer = meg.value(pairs.i[t], pairs.j[t]);
      if (answer.status != MegStatus::ok) return t;
      to[t] = answer.log_score;
    }
    return -1;
  });
  return py::make_tuple(failed, static_cast<int>(answer.status));
}

bool learn(Engine& engine, Index i, Index j, double change, double log_score) {
  return engine.locked([&](Meg& meg) {
    expect_pair(meg, i, j);
    return meg.learn(i, j, change, log_score);
  });
}

py::tuple run(Engine& engine, const Indices& i, const Indices& j, const Doubles& y, const Doubles& step, double gamma,
              bool strict, bool values_too, Doubles out, Array<std::uint8_t> updated) {
  const Pairs pairs(i, j);
  const Offset n = pairs.count();
  for (const py::array& array : {py::array(y), py::array(step), py::array(out), py::array(updated)})
    expect_size(array, n, "an array of trials");
  const MegStream stream{n,     pairs.i.data(), pairs.j.data(), y.data(),           step.data(),
                         gamma, strict,         values_too,     out.mutable_data(), updated.mutable_data()};
  MegStatus status = MegStatus::ok;
  const Offset failed = engine.locked([&](Meg& meg) {
    pairs.expect_in(meg);
    return meg.run(stream, status);
  });
  return py::make_tuple(failed, static_cast<int>(status));
}

MegKernelForm& kernel_form(Meg& meg) {
  auto* form = dynamic_cast<MegKernelForm*>(&meg.form());
  if (form == nullptr) throw std::invalid_argument("this engine keeps features");
  return *form;
}

MegFeatureForm& feature_form(Meg& meg) {
  auto* form = dynamic_cast<MegFeatureForm*>(&meg.form());
  if (form == nullptr) throw std::invalid_argument("this engine keeps kernels");
  return *form;
}

// Cells by seats, the vertices in their seats, the sums, and whether the cells are a table.
py::dict cells(Engine& engine) {
  const MegCellState state = engine.locked([](Meg& meg) { return kernel_form(meg).state(); });
  py::dict answer;
  answer["row_seats"] = to_array(state.row_seats);
  answer["col_seats"] = to_array(state.col_seats);
  answer["row_sums"] = to_array(state.row_sums);
  answer["col_sums"] = to_array(state.col_sums);
  answer["cell_rows"] = to_array(state.cell_rows);
  answer["cell_cols"] = to_array(state.cell_cols);
  answer["cells"] = to_array(state.cells);
  answer["table"] = state.table;
  return answer;
}

// In place of what the engine has learned: seats of vertices, each once and those it has first, their sums, and cells
// by seats.
void set_cells(Engine& engine, const Indices& row_seats, const Indices& col_seats, const Doubles& row_sums,
               const Doubles& col_sums, const Indices& rows, const Indices& cols, const Doubles& cell, bool table) {
  expect_size(row_sums, row_seats.size(), "row_sums");
  expect_size(col_sums, col_seats.size(), "col_sums");
  expect_size(rows, cell.size(), "cell_rows");
  expect_size(cols, cell.size(), "cell_cols");
  expect_below(rows, row_seats.size(), "cell_rows");
  expect_below(cols, col_seats.size(), "cell_cols");
  const MegCellState state{vector_of(row_seats), vector_of(col_seats), vector_of(row_sums), vector_of(col_sums),
                           vector_of(rows),      vector_of(cols),      vector_of(cell),     table};
  const bool taken = engine.locked([&](Meg& meg) { return kernel_form(meg).take(state); });
  if (!taken)
    throw std::invalid_argument(
        "row_seats and col_seats must name every vertex once at most, those with seats first, and none "
        "that the sides do not have");
}

py::dict clock(Engine& engine) {
  const MegClock at = engine.locked([](Meg& meg) { return meg.clock(); });
  py::dict place;
  place["updates"] = at.updates;
  place["bound"] = at.bound;
  place["trace"] = at.trace;
  return place;
}

Offset n_seen(Engine& engine) {
  return engine.locked([](Meg& meg) { return meg.n_seen(); });
}

void set_clock(Engine& engine, double updates, double bound, double trace) {
  engine.locked([&](Meg& meg) { return meg.clock() = {updates, bound, trace}; });
}

Doubles matrix(Engine& engine) {
  return to_array(engine.locked([](Meg& meg) { return feature_form(meg).matrix(); }));
}

void set_matrix(Engine& engine, const Doubles& matrix) {
  engine.locked([&](Meg& meg) {
    auto& held = feature_form(meg).matrix();
    if (static_cast<Offset>(held.size()) != matrix.size()) throw std::invalid_argument("matrix has another size");
    std::copy_n(matrix.data(), matrix.size(), held.begin());
  });
}

void grow_features(Engine& engine, const Doubles& rows, Offset n_rows, const Doubles& cols, Offset n_cols) {
  auto of_rows = source_of(rows, n_rows), of_cols = source_of(cols, n_cols);
  const bool grown =
      engine.locked([&](Meg& meg) { return feature_form(meg).grow(std::move(of_rows), std::move(of_cols)); });
  if (!grown) throw std::invalid_argument("features may gain rows; they keep their columns and lose no row");
}

}  // namespace

void bind_meg(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  py::class_<Engine>(
      m, "Meg", plain_type(),
      "Matrix exponentiated gradient over two sides; answers are (status, log(y_bar + 1), sign, update, steps).")
      .def_static("kernels", &with_kernels, arg("rows"), arg("cols"), arg("log_scale"), arg("tol"))
      .def_static("features", &with_features, exact("rows"), arg("n_rows"), exact("cols"), arg("n_cols"),
                  arg("log_scale"), arg("tol"))
      .def("value", &value, arg("i"), arg("j"))
      .def("decide", &decide, arg("i"), arg("j"), arg("y"), arg("gamma"), arg("strict"))
      .def("values", &values, exact("i"), exact("j"), exact("out"))
      .def("learn", &learn, arg("i"), arg("j"), arg("change"), arg("log_score"),
           "False, and nothing learned, when a sum is not finite.")
      .def("run", &run, exact("i"), exact("j"), exact("y"), exact("step"), arg("gamma"), arg("strict"), arg("values"),
           exact("out"), exact("updated"),
           "The first trial that failed, those before it being learned, or -1; and a status.")
      .def_property_readonly("n_seen", &n_seen)
      .def("grow_features", &grow_features, exact("rows"), arg("n_rows"), exact("cols"), arg("n_cols"))
      .def("cells", &cells)
      .def("set_cells", &set_cells, exact("row_seats"), exact("col_seats"), exact("row_sums"), exact("col_sums"),
           exact("cell_rows"), exact("cell_cols"), exact("cells"), arg("table"))
      .def("matrix", &matrix)
      .def("set_matrix", &set_matrix, exact("matrix"))
      .def("clock", &clock)
      .def("set_clock", &set_clock, arg("updates"), arg("bound"), arg("trace"));
}

}  // namespace lacunar::bind
