#include <pybind11/stl.h>

#include <cmath>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "meg_arrays.hpp"
#include "lacunar/pool/pair_pool.hpp"

namespace lacunar::bind {
namespace {

BilinearRule bilinear_of(const py::dict& options) {
  BilinearRule rule;
  rule.rank = options["rank"].cast<int>();
  rule.row_bias = options["row_bias"].cast<bool>();
  rule.col_bias = options["col_bias"].cast<bool>();
  rule.features = options["features"].cast<bool>();
  rule.pair_features = options["pair_features"].cast<int>();
  rule.bias = options["bias"].cast<double>();
  rule.factor = options["factor"].cast<double>();
  rule.feature = options["feature"].cast<double>();
  rule.global = options["common"].cast<double>();
  rule.start = options["start"].cast<double>();
  rule.doubt = options["doubt"].cast<double>();
  rule.noise = options["noise"].cast<double>();
  rule.mirrored = options["mirrored"].cast<bool>();
  rule.linked = options["linked"].cast<bool>();
  rule.products = options["products"].cast<bool>();
  rule.refit = options["refit"].cast<bool>();
  rule.sweeps = options["sweeps"].cast<int>();
  return rule;
}

PoolRule rule_of_pool(const py::dict& options) {
  PoolRule rule;
  for (const auto& form : options["bilinear"].cast<std::vector<py::dict>>()) rule.bilinear.push_back(bilinear_of(form));
  rule.smoothing = options["smoothing"].cast<double>();
  rule.refit_growth = options["refit_growth"].cast<double>();
  rule.first_refit = options["first_refit"].cast<Offset>();
  rule.refit_share = options["refit_share"].cast<double>();
  rule.mixer_variance = options["mixer_variance"].cast<double>();
  rule.correction_variance = options["correction_variance"].cast<double>();
  rule.trials = options["trials"].cast<int>();
  rule.extra = options["extra"].cast<int>();
  rule.shared_ids = options["shared_ids"].cast<bool>();
  rule.same = options["same"].cast<bool>();
  return rule;
}

template <class T>
std::vector<T> copied(const py::dict& from, const char* name) {
  const auto array = from[name].cast<Array<T>>();
  return std::vector<T>(array.data(), array.data() + array.size());
}

PoolSide side_of(const py::dict& known) {
  PoolSide side;
  side.size = known["size"].cast<Offset>();
  side.d = known["d"].cast<int>();
  side.phi = copied<double>(known, "phi");
  side.levels = known["levels"].cast<std::vector<int>>();
  side.groups = copied<Index>(known, "groups");
  side.wide = known["wide"].cast<int>();
  side.compared = copied<double>(known, "compared");
  if (known.contains("indptr")) {
    side.indptr = copied<Offset>(known, "indptr");
    side.near = copied<Index>(known, "near");
    side.weight = copied<double>(known, "weight");
  }
  return side;
}

// One pool, which one thread calls at a time: that of the model's lock.
class Pool {
 public:
  template <class F>
  auto locked(F&& call) {
    const Released nogil;
    return call();
  }

  Pool(const py::dict& options, const py::dict& rows, const py::dict& cols)
      : extra_(options["extra"].cast<Offset>()), pool_(rule_of_pool(options), side_of(rows), side_of(cols)) {}

  void grow(int side, const py::dict& more) {
    const PoolSide grown = side_of(more);
    if (side < 0 || side > 1) throw std::invalid_argument("side must be 0 or 1");
    locked([&] { pool_.grow(side, grown); });
  }

  void run(const Array<Index>& i, const Array<Index>& j, const Array<double>& y, const Array<double>& extra,
           Array<double> out, std::optional<Array<double>> chances) {
    const Offset n = static_cast<Offset>(i.size());
    expect_size(j, n, "j");
    expect_size(y, n, "y");
    expect_size(out, n, "out");
    expect_size(extra, {n, extra_}, "extra");
    if (chances) expect_size(*chances, {n, pool_.hedged()}, "each");
    expect_below(i, pool_.size(0), "i");
    expect_below(j, pool_.size(1), "j");
    double *to = out.mutable_data(), *all = chances ? chances->mutable_data() : nullptr;
    locked([&] { pool_.run(n, i.data(), j.data(), y.data(), extra.data(), to, all); });
  }

  void ask(const Array<Index>& i, const Array<Index>& j, const Array<Index>& rows_mirrored,
           const Array<Index>& cols_mirrored, const Array<double>& extra, Array<double> out) {
    const Offset n = static_cast<Offset>(i.size());
    for (const auto* vertices : {&j, &rows_mirrored, &cols_mirrored}) expect_size(*vertices, n, "an array of vertices");
    expect_size(out, n, "out");
    expect_size(extra, {n, extra_}, "extra");
    for (const auto* vertices : {&i, &cols_mirrored}) expect_vertices(*vertices, 0);
    for (const auto* vertices : {&j, &rows_mirrored}) expect_vertices(*vertices, 1);
    double* to = out.mutable_data();
    locked([&] {
      for (Offset t = 0; t < n; ++t)
        to[t] = pool_.probability(i.data()[t], j.data()[t], extra.data() + t * extra_,
                                  {rows_mirrored.data()[t], cols_mirrored.data()[t]});
    });
  }

  double ask_one(Index i, Index j, Index row_mirrored, Index col_mirrored, const std::vector<double>& extra) {
    expect_one(i, 0, -1);
    expect_one(j, 1, -1);
    expect_one(row_mirrored, 1, -1);
    expect_one(col_mirrored, 0, -1);
    expect_extra(extra);
    return locked([&] { return pool_.probability(i, j, extra.data(), {row_mirrored, col_mirrored}); });
  }

  double learn_one(Index i, Index j, double y, const std::vector<double>& extra) {
    expect_one(i, 0, 0);
    expect_one(j, 1, 0);
    expect_extra(extra);
    double out = 0;
    locked([&] { pool_.run(1, &i, &j, &y, extra.data(), &out, nullptr); });
    return out;
  }

  void set_features(int side, const Array<double>& phi) {
    if (side < 0 || side > 1) throw std::invalid_argument("side must be 0 or 1");
    expect_size(phi, {pool_.size(side), static_cast<Offset>(pool_.features(side))}, "phi");
    std::vector<double> copy(phi.data(), phi.data() + phi.size());
    locked([&] { pool_.set_features(side, std::move(copy)); });
  }

  void set_shared(const Array<Index>& rows, const Array<Index>& cols) {
    expect_size(cols, static_cast<Offset>(rows.size()), "cols");
    expect_below(rows, pool_.size(0), "rows");
    expect_below(cols, pool_.size(1), "cols");
    locked([&] {
      for (py::ssize_t k = 0; k < rows.size(); ++k) pool_.set_shared(rows.data()[k], cols.data()[k]);
    });
  }

  // Copies of all that learning changes; without the history only its length.
  py::dict state(bool history);
  void set_state(const py::dict& state);
  std::vector<double> weights() {
    return locked([&] { return pool_.weights(); });
  }
  int hedged() const { return pool_.hedged(); }
  Offset n_seen() { return pool_.state().seen.size(); }
  double mixture() const { return pool_.mixture(); }
  Offset size(int side) { return pool_.size(side); }

 private:
  // -1 stands for a vertex that is not known.
  void expect_vertices(const Array<Index>& vertices, int side) {
    for (py::ssize_t t = 0; t < vertices.size(); ++t) expect_one(vertices.data()[t], side, -1);
  }

  void expect_one(Index vertex, int side, Index low) {
    if (vertex < low || vertex >= pool_.size(side)) throw std::out_of_range("no such vertex");
  }
  void expect_extra(const std::vector<double>& extra) {
    if (static_cast<Offset>(extra.size()) != extra_)
      throw std::invalid_argument("extra must hold the log-odds of every expert from outside");
  }

  Offset extra_;
  PairPool pool_;
};

template <class T>
py::array_t<T> array_of(const std::vector<T>& from) {
  return py::array_t<T>(static_cast<py::ssize_t>(from.size()), from.data());
}

template <class T>
void replace(std::vector<T>& target, const py::dict& state, const std::string& name, bool same_size = true) {
  const auto values = state[name.c_str()].cast<Array<T>>();
  if (same_size && values.size() > static_cast<py::ssize_t>(target.size()))
    throw std::invalid_argument(name + " has more numbers than the pool has room for");
  const std::size_t size = same_size ? target.size() : static_cast<std::size_t>(values.size());
  target.assign(values.data(), values.data() + values.size());
  target.resize(size);
}

// Every array that learning changes, by name.
template <class F>
void each_array(PairPool& pool, F&& take) {
  PoolState& s = pool.state();
  take("row_counts", s.rows);
  take("col_counts", s.cols);
  take("counts", s.global);
  take("mixers", s.mixers);
  take("log_weights", s.log_weights);
  take("refit_matrix", s.refit.matrix);
  take("refit_right", s.refit.right);
  take("refit_sums", s.refit.sums);
  for (std::size_t e = 0; e < pool.models().size(); ++e) {
    BilinearState& b = pool.models()[e].state();
    const std::string name = "model" + std::to_string(e);
    take(name + "_rows", b.rows);
    take(name + "_cols", b.cols);
    take(name + "_common", b.global);
    take(name + "_row_prior", b.row_prior);
    take(name + "_col_prior", b.col_prior);
  }
}

// Where a refit stands, as an array: model, sweep, part, vertex, entry; then credit and quota.
std::vector<double> place_of(const RefitState& at) {
  std::vector<double> place;
  for (const Offset number : {at.model, at.sweep, at.part, at.vertex, at.entry})
    place.push_back(static_cast<double>(number));
  place.insert(place.end(), {at.credit, at.quota});
  return place;
}

void set_place(RefitState& at, const py::dict& state) {
  const auto place = state["refit_place"].cast<Array<double>>();
  expect_size(place, 7, "refit_place");
  const double* number = place.data();
  for (Offset* target : {&at.model, &at.sweep, &at.part, &at.vertex, &at.entry}) {
    if (!(std::abs(*number) < 1e15)) throw std::invalid_argument("refit_place of a snapshot must be counts; it is not. Take it again.");
    *target = static_cast<Offset>(*number++);
  }
  at.credit = *number++;
  at.quota = *number;
}

py::dict Pool::state(bool history) {
  py::dict state;
  each_array(pool_, [&](const std::string& name, const std::vector<double>& values) {
    state[name.c_str()] = array_of(values);
  });
  const PoolState& s = pool_.state();
  state["n_seen"] = s.seen.size();
  state["next_refit"] = s.next_refit;
  state["path"] = array_of(s.path);
  state["refit_place"] = array_of(place_of(s.refit));
  if (history) {
    state["seen_rows"] = array_of(s.seen.i);
    state["seen_cols"] = array_of(s.seen.j);
    state["seen_labels"] = array_of(s.seen.y);
  }
  return state;
}

void Pool::set_state(const py::dict& state) {
  PoolState& s = pool_.state();
  each_array(pool_, [&](const std::string& name, std::vector<double>& values) { replace(values, state, name); });
  replace(s.path, state, "path", false);
  s.next_refit = state["next_refit"].cast<double>();
  set_place(s.refit, state);
  const auto i = state["seen_rows"].cast<Array<Index>>(), j = state["seen_cols"].cast<Array<Index>>();
  const auto y = state["seen_labels"].cast<Array<std::int8_t>>();
  expect_size(j, static_cast<Offset>(i.size()), "seen_cols");
  expect_size(y, static_cast<Offset>(i.size()), "seen_labels");
  expect_below(i, pool_.size(0), "seen_rows");
  expect_below(j, pool_.size(1), "seen_cols");
  pool_.remember({{i.data(), i.data() + i.size()}, {j.data(), j.data() + j.size()}, {y.data(), y.data() + y.size()}});
  if (!pool_.stands(s.refit))
    throw std::invalid_argument("refit_place of a snapshot must lie in its history; it does not. Take it again.");
}

}  // namespace

void bind_pair_pool(py::module_& m) {
  py::class_<Pool>(m, "PairPool", plain_type(), "The pool of experts over pairs: it predicts and learns a stream.")
      .def(py::init<const py::dict&, const py::dict&, const py::dict&>())
      .def("size", &Pool::size)
      .def("grow", &Pool::grow)
      .def("set_features", &Pool::set_features)
      .def("set_shared", &Pool::set_shared)
      .def("run", &Pool::run)
      .def("ask", &Pool::ask)
      .def("ask_one", &Pool::ask_one)
      .def("learn_one", &Pool::learn_one)
      .def("state", &Pool::state, py::arg("history"))
      .def("set_state", &Pool::set_state)
      .def("weights", &Pool::weights)
      .def_property_readonly("n_seen", &Pool::n_seen)
      .def_property_readonly("mixture", &Pool::mixture)
      .def_property_readonly("hedged", &Pool::hedged);
}

}  // namespace lacunar::bind
