#include "lacunar/rls/rls.hpp"
#include "lacunar/rls/latent_rows.hpp"
#include "lacunar/rls/trackers.hpp"
#include "either.hpp"
#include "options.hpp"

namespace lacunar::bind {
namespace {

Forgetting forgetting_of(const py::dict& options) {
  Forgetting forgetting;
  const auto kind = option<std::string>(options, "forgetting");
  if (kind == "window")
    forgetting.kind = Forgetting::Kind::window;
  else if (kind == "adaptive")
    forgetting.kind = Forgetting::Kind::adaptive;
  else if (kind != "fixed")
    throw std::invalid_argument("unknown forgetting " + kind);
  forgetting.keep = option<double>(options, "keep");
  forgetting.lost = option<double>(options, "lost");
  forgetting.start = option<double>(options, "start");
  return forgetting;
}

RlsRule rule_of(const py::dict& options) {
  RlsRule rule;
  rule.lam1 = option<double>(options, "lam1");
  rule.lam2 = option<double>(options, "lam2");
  rule.lam3 = option<double>(options, "lam3");
  rule.rho = option<double>(options, "rho");
  rule.constant_until = option<Offset>(options, "constant_until");
  rule.continuous = option<bool>(options, "continuous");
  rule.ridge = option<double>(options, "ridge");
  rule.automatic = option<bool>(options, "automatic");
  rule.cap = option<double>(options, "cap");
  rule.delta = option<double>(options, "delta");
  rule.orthonormal = option<bool>(options, "orthonormal");
  rule.forgetting = forgetting_of(options);
  if (rule.orthonormal && rule.forgetting.kind == Forgetting::Kind::adaptive)
    throw std::invalid_argument("adaptive forgetting needs a basis that is not orthonormalised");
  return rule;
}

void expect_rank(Offset d) {
  if (d < 1 || d > kMaxRank) throw std::invalid_argument("rank must lie between 1 and " + std::to_string(kMaxRank));
}

// The arrays of a tracker by their names, held while the core writes to them. v (n_cols, d) says their sizes.
class State {
 public:
  explicit State(const py::dict& state) : given_(state), v_(array_option<double>(state, "v")) {
    expect_matrix(v_, "v");
    expect_rank(v_.shape(1));
  }

  const py::dict& state() const { return given_; }
  Offset n_cols() const { return v_.shape(0); }
  int rank() const { return static_cast<int>(v_.shape(1)); }
  double* v() { return v_.mutable_data(); }
  double* square(const char* name) { return numbers<double>(name, {rank(), rank()}); }
  double* by_code(const char* name) { return numbers<double>(name, {rank()}); }
  double* by_column(const char* name) { return numbers<double>(name, {n_cols()}); }

  template <class P>
  P* numbers(const char* name, std::initializer_list<Offset> shape) {
    auto array = array_option<P>(given_, name);
    expect_size(array, shape, name);
    held_.push_back(array);
    return array.mutable_data();
  }

 private:
  py::dict given_;
  Array<double> v_;
  std::vector<py::array> held_;
};

// The memories of a tracker; none, where `forgetting` does not go by them.
MemoryState memories_of(State& held, const Forgetting& forgetting) {
  if (forgetting.kind != Forgetting::Kind::adaptive) return {};
  const Offset columns = (held.n_cols() + kMemoryEvery - 1) / kMemoryEvery, d = held.rank();
  return {held.numbers<double>("memory_v", {columns, d, kMemories}),
          held.numbers<double>("memory_seen", {columns, kMemories}),
          held.numbers<double>("memory_inverse", {d, d, kMemories}),
          held.numbers<double>("memory_lines", {kMemoryLines, kMemories}),
          held.numbers<double>("memory_rows", {1}),
          held.numbers<double>("clock", {kRlsClock})};
}

// What a tracker leaves cells out by; nothing, where its state has no such arrays.
ScreenState screen_of(State& held) {
  if (!held.state().contains("deviation")) return {};
  return {held.by_column("deviation"), held.by_column("left_out"), held.numbers<double>("level", {3})};
}

// The scout of a tracker; none, where its state has no such arrays.
ScoutState scout_of(State& held) {
  if (!held.state().contains("scout_v")) return {};
  return {held.numbers<double>("scout_v", {held.n_cols(), held.rank()}), held.square("scout_inverse"),
          held.by_column("scout_seen"), held.numbers<double>("scout_line", {kScoutLines})};
}

// Every column of the rows has a place in the pool.
template <class T>
void expect_slots(const Rows<T>& rows, const Index* slot, Offset places) {
  for (Offset p = rows.offsets[0]; p < rows.offsets[rows.n_rows]; ++p) {
    const Index j = rows.indices[p];
    if (j < 0 || j >= rows.n_cols || slot[j] < 0 || slot[j] >= places)
      throw std::invalid_argument("slot must place every column of the rows in the pool; column " + std::to_string(j) +
                                  " has no place there");
  }
}

// Rows of a stream: labels, the order, and what is noted of every row.
template <class T>
struct Stream {
  Rows<T> rows;
  const Offset* order;
  Offset n_order;
  const double* label;
  RlsTrace trace;

  Stream(const Rows<T>& of, const Array<Offset>& in_order, const std::optional<Array<double>>& labels,
         Array<double>& prediction, Array<double>& residual)
      : rows(of), order(in_order.data()), n_order(static_cast<Offset>(in_order.size())), label(nullptr) {
    expect_below(in_order, rows.n_rows, "order");
    if (labels) expect_size(*labels, rows.n_rows, "label"), label = labels->data();
    expect_size(prediction, rows.n_rows, "prediction");
    expect_size(residual, rows.n_rows, "residual");
    trace = {prediction.mutable_data(), residual.mutable_data()};
  }
};

template <class P, class T>
Offset rls_over(const Stream<T>& stream, const RlsRule& rule, State& held) {
  const Offset places = array_option<P>(held.state(), "pool").shape(0), stride = rls_stride<P>(held.rank());
  const RlsState<P> state{held.n_cols(),
                          held.rank(),
                          held.v(),
                          held.square("t"),
                          held.square("t_inverse"),
                          held.by_code("w"),
                          held.template numbers<Index>("slot", {held.n_cols()}),
                          held.template numbers<P>("pool", {places, stride}),
                          held.by_column("discount"),
                          held.template numbers<double>("clock", {kRlsClock}),
                          held.square("latent_products"),
                          held.by_code("labelled"),
                          held.template numbers<double>("labels", {1}),
                          memories_of(held, rule.forgetting),
                          screen_of(held),
                          scout_of(held)};
  if (state.scout.v != nullptr && rule.orthonormal)
    throw std::invalid_argument("a scout needs a basis that is not orthonormalised");
  expect_slots(stream.rows, state.slot, places);
  const Released nogil;
  return rls_pass(stream.rows, stream.order, stream.n_order, stream.label, rule, state, stream.trace);
}

template <class T>
Offset pass(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
            const Array<Offset>& order, const std::optional<Array<double>>& label, const py::dict& options,
            const py::dict& state, Array<double>& prediction, Array<double>& residual) {
  State held(state);
  const Stream<T> stream(rows_of(indptr, indices, values, held.n_cols()), order, label, prediction, residual);
  const auto rule = rule_of(options);
  const bool single = Array<float>::check_(entry_of(state, "pool"));
  return single ? rls_over<float>(stream, rule, held) : rls_over<double>(stream, rule, held);
}

template <class T>
Offset shared(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
              const Array<Offset>& order, const std::optional<Array<double>>& label, const py::dict& options,
              const py::dict& state, Array<double>& prediction, Array<double>& residual) {
  State held(state);
  const Stream<T> stream(rows_of(indptr, indices, values, held.n_cols()), order, label, prediction, residual);
  const SharedRule rule{option<double>(options, "lam1"), option<double>(options, "ridge"),
                        option<bool>(options, "automatic"), forgetting_of(options)};
  const SharedState arrays{held.n_cols(),
                           held.rank(),
                           held.v(),
                           held.square("inverse"),
                           held.by_column("count"),
                           held.by_column("discount"),
                           held.template numbers<double>("sums", {kSharedSum}),
                           held.square("latent_products"),
                           held.by_code("labelled"),
                           held.by_code("w"),
                           held.template numbers<double>("clock", {kRlsClock}),
                           memories_of(held, rule.forgetting),
                           screen_of(held),
                           scout_of(held)};
  const Released nogil;
  return shared_pass(stream.rows, stream.order, stream.n_order, stream.label, rule, arrays, stream.trace);
}

template <class T>
Offset grouse(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
              const Array<Offset>& order, const py::dict& options, const py::dict& state, Array<double>& prediction,
              Array<double>& residual) {
  State held(state);
  Stream<T> stream(rows_of(indptr, indices, values, held.n_cols()), order, std::nullopt, prediction, residual);
  const GrouseState arrays{held.n_cols(),
                           held.rank(),
                           held.v(),
                           held.square("t"),
                           held.square("t_inverse"),
                           held.template numbers<double>("clock", {kRlsClock}),
                           screen_of(held)};
  const double damping = option<double>(options, "damping"), ridge = option<double>(options, "ridge");
  stream.trace.prediction = nullptr;  // this tracker sees no labels
  const Released nogil;
  return grouse_pass(stream.rows, stream.order, stream.n_order, damping, ridge, arrays, stream.trace);
}

double* matrix_of(Array<double>& matrix, Offset rows, Offset cols, const char* name) {
  expect_size(matrix, {rows, cols}, name);
  return matrix.mutable_data();
}

template <class T>
Offset latent_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values,
                 const Array<double>& basis, double ridge, Array<double>& latent,
                 std::optional<Array<double>>& residual, std::optional<Array<double>>& inverse, int n_threads) {
  if (basis.ndim() != 2) throw std::invalid_argument("basis is not a matrix");
  const Offset d = basis.shape(1);
  expect_rank(d);
  const auto rows = rows_of(indptr, indices, values, basis.shape(0));
  const Offset n = rows.n_rows;
  const LatentRows out{matrix_of(latent, n, d, "latent"), residual ? matrix_of(*residual, n, 1, "residual") : nullptr,
                       inverse ? matrix_of(*inverse, n, d * (d + 1) / 2, "inverse") : nullptr};
  const double* of = basis.data();
  const Released nogil;
  return latent_rows(rows, of, static_cast<int>(d), ridge, out, n_threads);
}

}  // namespace

void bind_rls(py::module_& m) {
  m.def(
      "rls_stride",
      [](int d, bool single) {
        expect_rank(d);
        return single ? rls_stride<float>(d) : rls_stride<double>(d);
      },
      py::arg("d"), py::arg("single"), "Elements of one stored inverse correlation.");
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("rls_pass", either(&pass<float>, &pass<double>), exact("indptr"), exact("indices"), exact("values"),
        exact("order"), exact("label").none(true), arg("options"), arg("state"), exact("prediction"), exact("residual"),
        "Recursive least squares over rows in order; the position of the first row that is not finite, or -1.");
  m.def("shared_pass", either(&shared<float>, &shared<double>), exact("indptr"), exact("indices"), exact("values"),
        exact("order"), exact("label").none(true), arg("options"), arg("state"), exact("prediction"), exact("residual"),
        "PETRELS with one correlation matrix for all columns; as rls_pass.");
  m.def("grouse_pass", either(&grouse<float>, &grouse<double>), exact("indptr"), exact("indices"), exact("values"),
        exact("order"), arg("options"), arg("state"), exact("prediction"), exact("residual"),
        "Greedy GROUSE; as rls_pass, with no labels.");
  m.def("latent_rows", either(&latent_of<float>, &latent_of<double>), exact("indptr"), exact("indices"),
        exact("values"), exact("basis"), arg("ridge"), exact("latent"), exact("residual").none(true),
        exact("inverse").none(true), arg("n_threads"),
        "Latent coordinates of rows in a basis, by a ridge; the number of singular rows that were rescued.");
  m.def(
      "shared_ridge",
      [](const Array<double>& sums, int d, double otherwise) {
        expect_size(sums, kSharedSum, "sums");
        return ridge_of(sums.data(), d, otherwise);
      },
      py::arg("sums").noconvert(), py::arg("d"), py::arg("otherwise"), "The automatic ridge of running sums.");
  m.attr("SHARED_SUMS") = static_cast<int>(kSharedSum);
  m.attr("MEMORIES") = kMemories;
  m.attr("MEMORY_EVERY") = kMemoryEvery;
  m.attr("MEMORY_LINES") = static_cast<int>(kMemoryLines);
  m.attr("SCOUT_LINES") = static_cast<int>(kScoutLines);
  m.attr("RLS_CLOCK") = static_cast<int>(kRlsClock);
  m.attr("RLS_MOST_RANK") = kMaxRank;
}

}  // namespace lacunar::bind
