#include <pybind11/stl.h>

#include <mutex>

#include "lacunar/meg.hpp"
#include "meg_arrays.hpp"

namespace lacunar::bind {
namespace {

// One engine: calls take turns, the interpreter released first, since a product may ask for it back.
class Engine {
 public:
  Engine(std::unique_ptr<MegForm> form, Offset n_rows, Offset n_cols, double log_scale, double tol)
      : n_rows_(n_rows), n_cols_(n_cols), meg_(std::move(form), log_scale, tol) {}

  template <class F>
  auto locked(F&& call) {
    const py::gil_scoped_release nogil;
    const std::lock_guard<std::mutex> turn(turn_);
    return call(meg_);
  }

  void expect_pair(Index i, Index j) const {
    if (i < 0 || i >= n_rows_ || j < 0 || j >= n_cols_) throw std::out_of_range("no such pair");
  }
  void expect_pairs(const Indices& i, const Indices& j) const {
    expect_size(j, i.size(), "j");
    for (py::ssize_t t = 0; t < i.size(); ++t) expect_pair(i.data()[t], j.data()[t]);
  }
  void resize(Offset n_rows, Offset n_cols) {
    n_rows_ = n_rows;
    n_cols_ = n_cols;
  }

 private:
  Offset n_rows_, n_cols_;
  Meg meg_;
  std::mutex turn_;
};

std::unique_ptr<Engine> with_kernels(const std::shared_ptr<MegSide>& rows, const std::shared_ptr<MegSide>& cols,
                                     double log_scale, double tol) {
  return std::make_unique<Engine>(std::make_unique<MegKernelForm>(rows, cols), rows->vertices(), cols->vertices(),
                                  log_scale, tol);
}

std::unique_ptr<Engine> with_features(const Doubles& rows, Offset n_rows, const Doubles& cols, Offset n_cols,
                                      double log_scale, double tol) {
  auto of_rows = source_of(rows, n_rows), of_cols = source_of(cols, n_cols);
  const Offset d_rows = of_rows.leading, d_cols = of_cols.leading;
  return std::make_unique<Engine>(std::make_unique<MegFeatureForm>(std::move(of_rows), d_rows, std::move(of_cols), d_cols),
                                  n_rows, n_cols, log_scale, tol);
}

py::tuple answer_of(const MegAnswer& a) {
  return py::make_tuple(static_cast<int>(a.status), a.log_score, a.positive, a.update, a.steps);
}

py::tuple value(Engine& engine, Index i, Index j) {
  engine.expect_pair(i, j);
  return answer_of(engine.locked([&](Meg& meg) { return meg.value(i, j); }));
}

py::tuple decide(Engine& engine, Index i, Index j, double y, double gamma, bool strict) {
  engine.expect_pair(i, j);
  return answer_of(engine.locked([&](Meg& meg) { return meg.decide(i, j, {y, gamma, strict}); }));
}

// log(y_bar + 1) of pairs one by one; the first that failed, or -1.
py::tuple values(Engine& engine, const Indices& i, const Indices& j, Doubles out) {
  engine.expect_pairs(i, j);
  expect_size(out, i.size(), "out");
  double* to = out.mutable_data();
  const Index *at_i = i.data(), *at_j = j.data();
  MegAnswer answer;
  const Offset failed = engine.locked([&](Meg& meg) -> Offset {
    for (Offset t = 0; t < i.size(); ++t) {
      answer = meg.value(at_i[t], at_j[t]);
      if (answer.status != MegStatus::ok) return t;
      to[t] = answer.log_score;
    }
    return -1;
  });
  return py::make_tuple(failed, static_cast<int>(answer.status));
}

bool learn(Engine& engine, Index i, Index j, double change, double log_score) {
  engine.expect_pair(i, j);
  return engine.locked([&](Meg& meg) { return meg.learn(i, j, change, log_score); });
}

py::tuple run(Engine& engine, const Indices& i, const Indices& j, const Doubles& y, const Doubles& step, double gamma,
              bool strict, bool values_too, Doubles out, Array<std::uint8_t> updated) {
  engine.expect_pairs(i, j);
  for (const py::array& each : {py::array(y), py::array(step), py::array(out), py::array(updated)})
    expect_size(each, i.size(), "an array of trials");
  const MegStream stream{i.size(), i.data(),   j.data(),   y.data(),           step.data(),
                         gamma,    strict,     values_too, out.mutable_data(), updated.mutable_data()};
  MegStatus status = MegStatus::ok;
  const Offset failed = engine.locked([&](Meg& meg) { return meg.run(stream, status); });
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
  std::vector<Index> rows, cols, row_seats, col_seats;
  std::vector<double> cell, row_sums, col_sums;
  bool table = false;
  engine.locked([&](Meg& meg) {
    auto& form = kernel_form(meg);
    form.cells().list(rows, cols, cell);
    row_seats = form.rows().vertex_at();
    col_seats = form.cols().vertex_at();
    row_sums.assign(form.row_sums().begin(), form.row_sums().begin() + form.rows().seats());
    col_sums.assign(form.col_sums().begin(), form.col_sums().begin() + form.cols().seats());
    table = form.cells().is_table();
    return 0;
  });
  py::dict made;
  made["row_seats"] = to_array(row_seats);
  made["col_seats"] = to_array(col_seats);
  made["row_sums"] = to_array(row_sums);
  made["col_sums"] = to_array(col_sums);
  made["cell_rows"] = to_array(rows);
  made["cell_cols"] = to_array(cols);
  made["cells"] = to_array(cell);
  made["table"] = table;
  return made;
}

void set_cells(Engine& engine, const Indices& row_seats, const Indices& col_seats, const Doubles& row_sums,
               const Doubles& col_sums, const Indices& rows, const Indices& cols, const Doubles& cell, bool table) {
  expect_size(row_sums, row_seats.size(), "row_sums");
  expect_size(col_sums, col_seats.size(), "col_sums");
  expect_size(rows, cell.size(), "cell_rows");
  expect_size(cols, cell.size(), "cell_cols");
  for (py::ssize_t t = 0; t < row_seats.size(); ++t) engine.expect_pair(row_seats.data()[t], 0);
  for (py::ssize_t t = 0; t < col_seats.size(); ++t) engine.expect_pair(0, col_seats.data()[t]);
  for (py::ssize_t t = 0; t < cell.size(); ++t)
    if (rows.data()[t] < 0 || rows.data()[t] >= row_seats.size() || cols.data()[t] < 0 ||
        cols.data()[t] >= col_seats.size())
      throw std::invalid_argument("a cell without seats");
  engine.locked([&](Meg& meg) {
    auto& form = kernel_form(meg);
    form.take_seats(vector_of(row_seats), vector_of(col_seats));
    std::copy_n(row_sums.data(), row_sums.size(), form.row_sums().begin());
    std::copy_n(col_sums.data(), col_sums.size(), form.col_sums().begin());
    for (Offset t = 0; t < cell.size(); ++t) {
      form.cells().set(rows.data()[t], cols.data()[t], cell.data()[t]);
      form.touch(rows.data()[t], cols.data()[t]);
    }
    form.cells().keep_as(table);
    return 0;
  });
}

py::dict clock(Engine& engine) {
  const MegClock at = engine.locked([](Meg& meg) { return meg.clock(); });
  py::dict made;
  made["updates"] = at.updates;
  made["bound"] = at.bound;
  made["trace"] = at.trace;
  return made;
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
    return 0;
  });
}

void grow_features(Engine& engine, const Doubles& rows, Offset n_rows, const Doubles& cols, Offset n_cols) {
  auto of_rows = source_of(rows, n_rows), of_cols = source_of(cols, n_cols);
  engine.locked([&](Meg& meg) {
    feature_form(meg).grow(std::move(of_rows), std::move(of_cols));
    return 0;
  });
  engine.resize(n_rows, n_cols);
}

}  // namespace

void bind_meg(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  py::class_<Engine>(m, "Meg", plain_type(), "Matrix exponentiated gradient over two sides; answers are (status, log(y_bar + 1), sign, update, steps).")
      .def_static("kernels", &with_kernels, arg("rows"), arg("cols"), arg("log_scale"), arg("tol"))
      .def_static("features", &with_features, exact("rows"), arg("n_rows"), exact("cols"), arg("n_cols"), arg("log_scale"),
                  arg("tol"))
      .def("value", &value, arg("i"), arg("j"))
      .def("decide", &decide, arg("i"), arg("j"), arg("y"), arg("gamma"), arg("strict"))
      .def("values", &values, exact("i"), exact("j"), exact("out"))
      .def("learn", &learn, arg("i"), arg("j"), arg("change"), arg("log_score"),
           "False, and nothing learned, when a sum is not finite.")
      .def("run", &run, exact("i"), exact("j"), exact("y"), exact("step"), arg("gamma"), arg("strict"), arg("values"),
           exact("out"), exact("updated"), "The first trial that failed, after which all is as before, or -1; and a status.")
      .def("expect_pairs", &Engine::expect_pairs, exact("i"), exact("j"))
      .def("resize", &Engine::resize, arg("n_rows"), arg("n_cols"))
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
