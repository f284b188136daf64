#include "lacunar/primal/algorithm_one.hpp"
#include "either.hpp"
#include "feature_map.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

// Part of what the core holds, without a copy; `owner` keeps it.
template <class V, class T>
Array<V> part_of(const std::shared_ptr<const Support<T>>& owner, const std::vector<V>& values,
                 std::vector<py::ssize_t> shape) {
  auto held = std::make_unique<std::shared_ptr<const Support<T>>>(owner);
  const py::capsule base(held.release(),
                         [](void* memory) { delete static_cast<std::shared_ptr<const Support<T>>*>(memory); });
  return Array<V>(std::move(shape), values.data(), base);
}

template <class V>
std::vector<V> copy_of(const Array<V>& array) {
  return {array.data(), array.data() + array.size()};
}

// AlgorithmOne of either precision, which its arrays of numbers must have.
class BoundAlgorithmOne {
 public:
  virtual ~BoundAlgorithmOne() = default;
  virtual Offset learn(const Array<Offset>& indptr, const Array<Index>& indices, const Numbers& values,
                       const Numbers64& scale, const Array<double>& target, const Numbers64& weight,
                       const Numbers64& curvature, const Array<Offset>& order, const std::optional<Numbers>& table,
                       const py::dict& rule, double largest, Array<double>& decisions, int n_threads) = 0;
  virtual void decide(const Array<Offset>& indptr, const Array<Index>& indices, const Numbers& values,
                      const Numbers64& scale, const std::optional<Numbers>& table, const Array<double>& coef,
                      Array<double>& decisions, int n_threads) const = 0;
  virtual Array<double> coefficients(const std::string& iterate) const = 0;
  virtual void add_stored(const Numbers& first, const std::optional<Numbers>& second) const = 0;
  virtual Array<double> clock() const = 0;
  virtual py::tuple stored() const = 0;
  virtual void restore(const Array<double>& clock, const Array<Offset>& indptr, const Array<Index>& indices,
                       const Numbers& values, const Numbers64& scale, const Numbers64& curvature,
                       const Array<double>& first, const Array<double>& second) = 0;
};

// One of them, with the arrays of its tables.
template <class T>
class AlgorithmOneOf : public BoundAlgorithmOne {
  using MaybeArray = std::optional<Array<T>>;

 public:
  AlgorithmOneOf(Offset n_cols, Offset outputs, const std::optional<py::dict>& map,
                 const std::optional<Numbers>& first, const std::optional<Numbers>& second, Offset block,
                 Offset budget, const py::dict& kernel)
      : first_(typed<MaybeArray>(first).held),
        second_(typed<MaybeArray>(second).held),
        on_sum_(option<T>(kernel, "on_sum")),
        on_count_(option<T>(kernel, "on_count")),
        constant_(option<T>(kernel, "constant")),
        coef0_(option<T>(kernel, "coef0")),
        shrink_(option<T>(kernel, "shrink")),
        degree_(option<int>(kernel, "degree")),
        model_(layout_of(n_cols, outputs, map, block, budget)) {}

  Offset learn(const Array<Offset>& indptr, const Array<Index>& indices, const Numbers& numbers, const Numbers64& scale,
               const Array<double>& target, const Numbers64& weight, const Numbers64& curvature,
               const Array<Offset>& order, const std::optional<Numbers>& table, const py::dict& rule, double largest,
               Array<double>& decisions, int n_threads) override {
    const Layout<T>& layout = model_.layout();
    const auto values = typed<Array<T>>(numbers).held;
    const auto rows = rows_of(indptr, indices, values, layout.n_cols);
    const TrainingSet<T> training = training_of(rows, scale, target, weight, curvature, order);
    if (training.outputs != layout.outputs) throw std::invalid_argument("target has another number of outputs");
    const StepRule steps = step_rule_of(rule);
    if (needs_curvature(steps) || layout.budget > 0) expect_curvature(training);
    expect_scales(training.scale);
    expect_size(decisions, {rows.n_rows, training.outputs}, "decisions");
    const auto factors = typed<MaybeArray>(table).held;
    const RowKernel<T> kernel = kernel_of(factors, rows);
    double* f = decisions.mutable_data();
    const Released nogil;
    return model_.learn(kernel, training, steps, largest, f, n_threads);
  }

  void decide(const Array<Offset>& indptr, const Array<Index>& indices, const Numbers& numbers, const Numbers64& scale,
              const std::optional<Numbers>& table, const Array<double>& coef, Array<double>& decisions,
              int n_threads) const override {
    const Layout<T>& layout = model_.layout();
    const auto values = typed<Array<T>>(numbers).held;
    const auto rows = rows_of(indptr, indices, values, layout.n_cols);
    const double* scales = numbers_of(scale, rows.n_rows, 1, "scale");
    expect_scales(scales);
    expect_size(coef, {model_.stored()->count, layout.outputs}, "coef");
    expect_size(decisions, {rows.n_rows, layout.outputs}, "decisions");
    const auto factors = typed<MaybeArray>(table).held;
    const RowKernel<T> kernel = kernel_of(factors, rows);
    double* f = decisions.mutable_data();
    const Released nogil;
    model_.decide(kernel, rows, scales, coef.data(), f, n_threads);
  }

  Array<double> coefficients(const std::string& iterate) const override {
    const Offset count = model_.stored()->count, outputs = model_.layout().outputs;
    return Array<double>({count, outputs}, model_.coefficients(iterate_of(iterate)).data());
  }

  void add_stored(const Numbers& first, const std::optional<Numbers>& second) const override {
    T *one = table_of(first), *other = second ? table_of(*second) : nullptr;
    const Released nogil;
    model_.add_stored(one, other, 1);
  }

  // Steps, scale and reach of the clock, and what a budget lost.
  Array<double> clock() const override {
    const double* clock = model_.clock();
    return to_array(std::vector<double>{clock[kT], clock[kScale], clock[kReach], model_.lost()});
  }

  // Arrays of the stored rows, and their first and second coefficients.
  py::tuple stored() const override {
    const std::shared_ptr<const Support<T>> rows = model_.stored();
    const Offset count = rows->count, entries = rows->entries(), outputs = model_.layout().outputs;
    return py::make_tuple(part_of(rows, rows->offsets, {count + 1}), part_of(rows, rows->indices, {entries}),
                          part_of(rows, rows->values, {entries}), part_of(rows, rows->first, {count, outputs}),
                          part_of(rows, rows->second, {count, outputs}));
  }

  void restore(const Array<double>& clock, const Array<Offset>& indptr, const Array<Index>& indices,
               const Numbers& numbers, const Numbers64& scale, const Numbers64& curvature, const Array<double>& first,
               const Array<double>& second) override {
    const auto values = typed<Array<T>>(numbers).held;
    expect_size(clock, kStepClock + 1, "clock");
    const Offset outputs = model_.layout().outputs;
    const auto rows = rows_of(indptr, indices, values, model_.layout().n_cols);
    if (model_.layout().budget > 0 && !curvature)
      throw std::invalid_argument("a budget needs the curvature of the rows");
    numbers_of(scale, rows.n_rows, 1, "scale"), numbers_of(curvature, rows.n_rows, 1, "curvature");
    expect_size(first, {rows.n_rows, outputs}, "first");
    expect_size(second, {rows.n_rows, outputs}, "second");
    auto stored = std::make_shared<Support<T>>();
    stored->count = rows.n_rows;
    stored->offsets = copy_of(indptr), stored->indices = copy_of(indices), stored->values = copy_of(values);
    stored->first = copy_of(first), stored->second = copy_of(second);
    if (scale) stored->scale.assign(scale->data(), scale->data() + scale->size());
    if (curvature) stored->curvature = copy_of(*curvature);
    model_.restore(clock.data(), clock.data()[kStepClock], std::move(stored));
  }

 private:
  Layout<T> layout_of(Offset n_cols, Offset outputs, const std::optional<py::dict>& options, Offset block,
                      Offset budget) {
    if (outputs < 1) throw std::invalid_argument("no outputs");
    int_of(n_cols, "n_cols");
    Layout<T> layout{n_cols, outputs, std::nullopt, nullptr, nullptr, block, budget};
    if (options) layout.map = map_of(*options);
    if (block < (options ? 0 : 1) || budget < 0) throw std::invalid_argument("block must be at least 1");
    if (!layout.map) return layout;
    if (layout.map->n_cols != n_cols) throw std::invalid_argument("the map has another number of columns");
    if (block > 0) expect_whole(*layout.map);
    if (!first_) throw std::invalid_argument("a map needs its table");
    const Offset size = product_of({layout.map->table_size(), outputs});
    expect_size(*first_, size, "first");
    layout.first = first_->mutable_data();
    if (second_) expect_size(*second_, size, "second"), layout.second = second_->mutable_data();
    return layout;
  }

  T* table_of(const Numbers& numbers) const {
    auto table = typed<Array<T>>(numbers).held;
    const auto& map = model_.layout().map;
    if (!map) throw std::invalid_argument("there is no table");
    expect_size(table, {map->table_size(), model_.layout().outputs}, "table");
    return table.mutable_data();
  }

  // `table` is g by number of common columns, held by the caller; none where rows are compared with no others.
  RowKernel<T> kernel_of(const MaybeArray& table, const Rows<T>& rows) const {
    const auto& layout = model_.layout();
    if (layout.map && layout.block == 0) return {};
    if (!table || table->size() <= longest_of(rows))
      throw std::invalid_argument("the table of the kernel ends before the longest row does");
    return {{on_sum_, on_count_, constant_, table->data()}, int_of(table->size(), "table"), degree_, coef0_, shrink_};
  }

  void expect_scales(const double* scale) const {
    const auto rows = model_.stored();
    if (rows->count > 0 && (scale != nullptr) == rows->scale.empty())
      throw std::invalid_argument("rows and stored rows must both have scales, or neither");
  }

  MaybeArray first_, second_;
  T on_sum_, on_count_, constant_, coef0_, shrink_;
  int degree_;
  AlgorithmOne<T> model_;
};

std::unique_ptr<BoundAlgorithmOne> algorithm_one(Offset n_cols, Offset outputs, const std::optional<py::dict>& map,
                                                 const std::optional<Numbers>& first,
                                                 const std::optional<Numbers>& second, Offset block, Offset budget,
                                                 const py::dict& kernel, bool single) {
  if (single) return std::make_unique<AlgorithmOneOf<float>>(n_cols, outputs, map, first, second, block, budget, kernel);
  return std::make_unique<AlgorithmOneOf<double>>(n_cols, outputs, map, first, second, block, budget, kernel);
}

}  // namespace

void bind_algorithm_one(py::module_& m) {
  using py::arg;
  using Bound = BoundAlgorithmOne;
  const auto exact = [](const char* argument) { return arg(argument).noconvert(); };
  py::class_<Bound>(m, "AlgorithmOne", plain_type(),
                    "Algorithm 1 with its clock, its tables and the rows that it stores, of float32 or float64.")
      .def(py::init(&algorithm_one), arg("n_cols"), arg("outputs"), arg("map").none(true), exact("first").none(true),
           exact("second").none(true), arg("block"), arg("budget"), arg("kernel"), arg("single"))
      .def("learn", &Bound::learn, exact("indptr"), exact("indices"), exact("values"), exact("scale").none(true),
           exact("target"), exact("weight").none(true), exact("curvature").none(true), exact("order"),
           exact("table").none(true), arg("rule"), arg("largest"), exact("decisions"), arg("n_threads"),
           "A step a row, after its values; the row that is not finite and not learned, or -1.")
      .def("decide", &Bound::decide, exact("indptr"), exact("indices"), exact("values"), exact("scale").none(true),
           exact("table").none(true), exact("coef"), exact("decisions"), arg("n_threads"),
           "Values of a sum over the stored rows.")
      .def("coefficients", &Bound::coefficients, arg("iterate"), "Of the stored rows, (rows, outputs).")
      .def("add_stored", &Bound::add_stored, exact("first"), exact("second").none(true),
           "Adds the stored rows to tables.")
      .def("clock", &Bound::clock, "Steps, scale, reach, lost.")
      .def("stored", &Bound::stored, "indptr, indices and values of the stored rows; both coefficients.")
      .def("restore", &Bound::restore, exact("clock"), exact("indptr"), exact("indices"), exact("values"),
           exact("scale").none(true), exact("curvature").none(true), exact("first"), exact("second"),
           "Goes on from a clock, stored rows and what the tables hold now.");
}

}  // namespace lacunar::bind
