#include "lacunar/primal/online.hpp"
#include "either.hpp"
#include "steps.hpp"

namespace lacunar::bind {
namespace {

// `table` is that of the options, held by the caller.
template <class T>
RowKernel<T> kernel_of(const py::dict& options, const Array<T>& table, const Rows<T>& rows) {
  const int size = int_of(table.size(), "the table of the kernel");
  if (size <= longest_of(rows)) throw std::invalid_argument("the table of the kernel ends before the longest row does");
  const Form<T> form{option<T>(options, "on_sum"), option<T>(options, "on_count"), option<T>(options, "constant"),
                     table.data()};
  return {form, size, option<int>(options, "degree"), option<T>(options, "coef0"), option<T>(options, "shrink")};
}

template <class A>
auto* room_in(A& array, Offset needed) {
  if (array.size() < needed) throw std::invalid_argument("no room left among the support rows");
  return array.mutable_data();
}

// The arrays of a Support, held while the core writes to them; they may be longer than `count` rows need.
template <class T>
struct SupportArrays {
  Offset count;
  Array<Offset> offsets;
  Array<Index> indices;
  Array<T> values;
  std::optional<Array<T>> scale;
  Array<double> first, second;

  explicit SupportArrays(const py::dict& state)
      : count(option<Offset>(state, "n_rows")),
        offsets(array_option<Offset>(state, "indptr")),
        indices(array_option<Index>(state, "indices")),
        values(array_option<T>(state, "values")),
        scale(optional_array<T>(state, "scale")),
        first(array_option<double>(state, "first")),
        second(array_option<double>(state, "second")) {}

  // With room for `more` rows of `entries` entries. Their columns are looked at where a model is loaded: here that
  // would cost as much as the values of a single row do.
  Support<T> with_room(Offset outputs, Offset more, Offset entries) {
    if (count < 0 || count >= offsets.size()) throw std::invalid_argument("n_rows must lie within the offsets");
    Offset* starts = room_in(offsets, count + more + 1);
    expect_offsets(starts, count, std::min(indices.size(), values.size()), "the offsets of the support rows");
    const Offset used = starts[count] + entries, rows = count + more;
    return {count,
            starts,
            room_in(indices, used),
            room_in(values, used),
            scale ? room_in(*scale, rows) : nullptr,
            room_in(first, product_of({rows, outputs})),
            room_in(second, product_of({rows, outputs}))};
  }
};

template <class T>
void expect_scales(const T* scale, const Support<T>& support) {
  if ((scale != nullptr) != (support.scale != nullptr))
    throw std::invalid_argument("rows and support rows must both have scales, or neither");
}

template <class T>
Offset entries_in(const Lesson<T, T>& lesson) {
  const Offset* starts = lesson.rows.offsets;
  Offset entries = 0;
  for (Offset k = 0; k < lesson.n_order; ++k) entries += starts[lesson.order[k] + 1] - starts[lesson.order[k]];
  return entries;
}

template <class T>
std::pair<Offset, Offset> online_descend_of(const Array<Offset>& indptr, const Array<Index>& indices,
                                            const Array<T>& values, Offset n_cols, const py::dict& kernel,
                                            const py::dict& lesson, const py::dict& rule, const py::dict& support,
                                            Offset block, Array<double>& clock, Array<double>& decisions, bool valued,
                                            int n_threads) {
  const auto rows = rows_of(indptr, indices, values, n_cols);
  const LessonArrays<T, T> arrays(lesson);
  const auto learned = arrays.over(rows);
  SupportArrays<T> held(support);
  auto rows_kept = held.with_room(learned.outputs, learned.n_order, entries_in(learned));
  expect_scales(learned.scale, rows_kept);
  const StepRule steps = step_rule_of(rule);
  if (steps.loss->curvature > 0) expect_curvature(learned);
  expect_size(clock, kStepClock, "clock");
  expect_size(decisions, {rows.n_rows, learned.outputs}, "decisions");
  if (block < 1) throw std::invalid_argument("block must be at least 1");
  const auto table = array_option<T>(kernel, "table");
  const auto form = kernel_of(kernel, table, rows);
  double *times = clock.mutable_data(), *f = decisions.mutable_data();
  const Released nogil;
  const Offset reached = online_descend(form, learned, steps, block, rows_kept, times, f, valued, n_threads);
  return {reached, rows_kept.count};
}

template <class T>
void online_decide_of(const Array<Offset>& indptr, const Array<Index>& indices, const Array<T>& values, Offset n_cols,
                      const py::dict& kernel, const std::optional<Array<T>>& scale, const py::dict& support,
                      const Array<double>& coef, Array<double>& decisions, int n_threads) {
  const Offset outputs = decisions.ndim() == 2 ? decisions.shape(1) : 1;
  const auto rows = rows_of(indptr, indices, values, n_cols);
  SupportArrays<T> held(support);
  const auto rows_kept = held.with_room(outputs, 0, 0);
  expect_size(coef, {rows_kept.count, outputs}, "coef");
  expect_size(decisions, {rows.n_rows, outputs}, "decisions");
  if (scale) expect_size(*scale, rows.n_rows, "scale");
  const T* scales = scale ? scale->data() : nullptr;
  expect_scales(scales, rows_kept);
  const auto table = array_option<T>(kernel, "table");
  const auto form = kernel_of(kernel, table, rows);
  double* f = decisions.mutable_data();
  const Released nogil;
  online_decide(form, rows, scales, rows_kept, coef.data(), outputs, f, n_threads);
}

}  // namespace

void bind_online(py::module_& m) {
  using py::arg;
  const auto exact = [](const char* name) { return arg(name).noconvert(); };
  m.def("online_descend", either(&online_descend_of<float>, &online_descend_of<double>), exact("indptr"),
        exact("indices"), exact("values"), arg("n_cols"), arg("kernel"), arg("lesson"), arg("rule"), arg("support"),
        arg("block"), exact("clock"), exact("decisions"), arg("valued"), arg("n_threads"),
        "Algorithm 1 over support rows until a fold is due: steps taken, or -1 - the one that is not finite; support "
        "rows.");
  m.def("online_decide", either(&online_decide_of<float>, &online_decide_of<double>), exact("indptr"), exact("indices"),
        exact("values"), arg("n_cols"), arg("kernel"), exact("scale").none(true), arg("support"), exact("coef"),
        exact("decisions"), arg("n_threads"), "Values of a sum over support rows.");
}

}  // namespace lacunar::bind
