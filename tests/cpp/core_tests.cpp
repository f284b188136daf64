// Tests of the core without Python. Built and run by .ci/core: a debug build, so that its assertions look, under the
// sanitizers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lacunar/dual/dual.hpp"
#include "lacunar/gram/karma_gram.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/observed/triplets.hpp"
#include "lacunar/parallel/rounds.hpp"
#include "lacunar/primal/losses.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace {

using namespace lacunar;

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

// Some rows of six columns, of which one row is empty.
struct Table {
  std::vector<Offset> offsets{0, 3, 3, 5, 9};
  std::vector<Index> indices{0, 2, 5, 1, 2, 0, 1, 2, 4};
  std::vector<double> values{1, -2, 3, 4, .5, -1, 2, 7, 1};

  Rows<double> rows() const { return {offsets.data(), indices.data(), values.data(), 4, 6}; }
  Failure fault() const { return find_fault(rows(), static_cast<Offset>(values.size())); }
  bool both(Offset i, Offset k, double& sum, int& count) const {  // the slow twin of a pair: every column by itself
    sum = count = 0;
    for (Offset p = offsets[i]; p < offsets[i + 1]; ++p)
      for (Offset q = offsets[k]; q < offsets[k + 1]; ++q)
        if (indices[p] == indices[q]) sum += values[p] * values[q], ++count;
    return count > 0;
  }
};

void faults_are_found() {
  expect(Table().fault().ok(), "a sound table has no fault");
  Table unsorted, repeated, large, infinite, falling;
  unsorted.indices[3] = 3;
  repeated.indices[4] = 1;
  large.indices[8] = 6;
  infinite.values[5] = INFINITY;
  falling.offsets[2] = 2;
  expect(unsorted.fault().status == Status::index_unsorted && unsorted.fault().row == 2, "an unsorted row");
  expect(repeated.fault().status == Status::index_repeated, "a repeated column");
  expect(large.fault().status == Status::index_too_large && large.fault().position == 8, "a column too large");
  expect(infinite.fault().status == Status::not_finite, "an infinite value");
  expect(falling.fault().status == Status::offsets_decrease, "offsets that fall");
}

void columns_are_rows_transposed() {
  const Table table;
  std::vector<Offset> offsets(7), rows(9), positions(9);
  transpose(table.rows(), offsets.data(), rows.data(), positions.data());
  expect(offsets == std::vector<Offset>{0, 2, 4, 7, 7, 8, 9}, "offsets of columns");
  bool same = true;
  for (Index j = 0; j < 6; ++j)
    for (Offset p = offsets[j]; p < offsets[j + 1]; ++p) same = same && table.indices[positions[p]] == j;
  expect(same, "every entry is found under its column");
}

// k = (s + n / 2 + 1 / 4) 2^n over every path: all of these numbers are exact.
void every_path_has_the_same_gram() {
  const Table table;
  const std::vector<double> powers{1, 2, 4, 8, 16, 32, 64};
  for (const GramPath path : {GramPath::dense, GramPath::spmm, GramPath::inverted}) {
    std::vector<double> out(16, NAN);
    const GramTask<double> task{table.rows(), table.rows(), true,      {{1, .5, .25, powers.data()}},
                                nullptr,      nullptr,      out.data()};
    karma_gram(task, path, 2);
    for (Offset i = 0; i < 4; ++i)
      for (Offset k = 0; k < 4; ++k) {
        double sum = 0;
        int count = 0;
        table.both(i, k, sum, count);
        expect(out[4 * i + k] == (sum + .5 * count + .25) * powers[count], "a kernel value of a path");
      }
  }
}

void losses_survive_large_values() {
  expect(sigmoid(-1e4) == 0 && sigmoid(1e4) == 1 && sigmoid(0) == .5, "sigmoid");
  expect(softplus(-1e4) == 0 && softplus(1e4) == 1e4, "softplus");
}

constexpr double kEpsilon = .1;
const std::vector<double> kValues{-2.3, -1, -.4, 0, .2, .65, 1, 1.6, 3.1};

void expect_of(const PointLoss& loss, bool holds, const char* what) {
  if (!holds) std::printf("loss '%s': ", std::string(loss.name).c_str());
  expect(holds, what);
}

// upper loss(f) + beta f + max over g of (-beta g - upper loss(g)), the conjugate by its definition: the term in the
// maximum is concave, so leaving out a third of its interval at a time finds it, whatever the shape of the loss.
double gap_by_definition(const PointLoss& loss, double beta, double f, double y, double upper) {
  const auto term = [&](double g) { return -beta * g - upper * loss.value(g, y, kEpsilon); };
  double low = -60, high = 60;
  for (int i = 0; i < 150; ++i) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    (term(left) < term(right) ? low : high) = term(left) < term(right) ? left : right;
  }
  return term((low + high) / 2) - term(f);
}

std::vector<double> targets_of(const PointLoss& loss) {
  return loss.is_margin ? std::vector<double>{-1, 1} : std::vector<double>{-1, .7};
}

// Coordinates beta inside the bounds that the table gives the loss.
std::vector<double> coordinates_of(const PointLoss& loss, double y, double upper) {
  const double low = std::max(loss.low, -2.0), high = std::min(loss.high, 2.0), side = loss.is_margin ? y : 1;
  std::vector<double> coordinates;
  for (const double share : {.1, .45, .8}) coordinates.push_back(side * upper * (low + share * (high - low)));
  return coordinates;
}

// A convex function has one subgradient where it is smooth, and these inequalities hold for no other.
void slopes_are_subgradients() {
  for (const PointLoss& loss : all_losses()) {
    if (loss.slope == nullptr) continue;
    for (const double y : targets_of(loss))
      for (const double f : kValues) {
        const double value = loss.value(f, y, kEpsilon), slope = loss.slope(f, y, kEpsilon);
        for (const double step : {-2.0, -.3, -1e-5, 1e-5, .3, 2.0}) {
          const double excess = loss.value(f + step, y, kEpsilon) - value - slope * step;
          expect_of(loss, excess > -1e-12, "the slope is a subgradient");
          expect_of(loss, loss.curvature == 0 || excess <= loss.curvature / 2 * step * step + 1e-12,
                    "the curvature bounds the growth of the slope");
        }
        const double share = -slope * (loss.is_margin ? y : 1);
        if (loss.has_dual) expect_of(loss, loss.low <= share && share <= loss.high, "the bounds hold every slope");
      }
  }
}

void dual_steps_are_those_of_the_definition() {
  for (const PointLoss& loss : all_losses()) {
    if (!loss.has_dual) continue;
    for (const double y : targets_of(loss))
      for (const double upper : {.5, 2.0})
        for (const double beta : coordinates_of(loss, y, upper))
          for (const double f : kValues) {
            const double gap = coordinate_gap(loss, beta, f, y, upper, kEpsilon);
            expect_of(loss, std::abs(gap - gap_by_definition(loss, beta, f, y, upper)) < 1e-9, "a gap by definition");
            for (const double k : {.01, .3, 2.0}) {
              const double best = best_beta(loss, beta, f, y, upper, k, kEpsilon), moved = f + k * (best - beta);
              expect_of(loss, gap_by_definition(loss, best, moved, y, upper) < 1e-9, "the best coordinate has no gap");
            }
          }
  }
}

// dual.cpp has the losses of margins inline: an entry of another shape would be taken for one of them.
void solvers_of_whole_grams_reach_the_optimum() {
  // Products of (2, 0), (2, .5), (1, 0) and (-.5, 1). The second row's margin is below -1 at the optimum.
  constexpr Offset n = 4;
  const std::vector<float> gram{4, 4, 2, -1, 4, 4.25F, 2, -.5F, 2, 2, 1, -.5F, -1, -.5F, -.5F, 1.25F};
  const std::vector<double> y{1, -1, 1, -1}, upper{1, .5, 20, 2};
  const auto value_at = [&](const std::vector<double>& beta, Offset i) {
    double f = 0;
    for (Offset j = 0; j < n; ++j) f += static_cast<double>(gram[i * n + j]) * beta[j];
    return f;
  };
  for (const PointLoss& loss : all_losses()) {
    if (!loss.has_gram_dual) continue;
    std::vector<double> beta(n, 0), gradient(y), logit(n, 0);
    if (loss.is_logistic) {
      for (Offset i = 0; i < n; ++i) beta[i] = y[i] * upper[i] / 2;
      for (Offset i = 0; i < n; ++i) gradient[i] = -value_at(beta, i);
    }
    const DualProblem problem{gram.data(), y.data(), upper.data(), n, &loss};
    const DualProgress progress = ascend(problem, {beta.data(), gradient.data(), logit.data()}, 100000, 1e-8);
    double primal = 0, gap = 0;
    for (Offset i = 0; i < n; ++i) {
      const double f = value_at(beta, i);
      primal += beta[i] * f / 2 + upper[i] * loss.value(f, y[i], kEpsilon);
      gap += gap_by_definition(loss, beta[i], f, y[i], upper[i]);
    }
    expect_of(loss, gap < 1e-5 * primal, "the optimum of a Gram matrix");
    expect_of(loss, std::abs(progress.primal - primal) < 1e-6 * primal, "the objective of a Gram matrix");
  }
}

// Of every size that blocks of eight cut in another way: A (i, k) = min(i, k) + 1, and A + I.
void factors_solve_and_invert() {
  const FactorKernels& factor = kernels().factor;
  for (int d = 1; d <= 33; ++d) {
    const int leading = padded(d);
    const auto at = [&](int i, int k) { return static_cast<std::size_t>(i * leading + k); };
    std::vector<double> matrix(static_cast<std::size_t>(leading * leading), 0), root(matrix), inverse(matrix);
    std::vector<double> x(static_cast<std::size_t>(leading), 0);
    for (int i = 0; i < d; ++i) {
      for (int k = 0; k < d; ++k) matrix[at(i, k)] = std::min(i, k) + 1 + (i == k);
      x[static_cast<std::size_t>(i)] = i % 3 - .5;
    }
    const std::vector<double> original = matrix, right = x;
    expect(factor.factorise(matrix.data(), d, leading, 1e-12), "a positive definite matrix");
    factor.solve(matrix.data(), d, leading, x.data());
    factor.invert_root(matrix.data(), d, leading, root.data());
    kernels().small.triangular_gram(root.data(), d, leading, inverse.data());
    for (int i = 0; i < d; ++i) {
      double back = 0;
      for (int k = 0; k < d; ++k) back += original[at(i, k)] * x[static_cast<std::size_t>(k)];
      expect(std::abs(back - right[static_cast<std::size_t>(i)]) < 1e-12, "a solution");
      for (int j = 0; j < d; ++j) {
        double one = 0;
        for (int k = 0; k < d; ++k) one += original[at(i, k)] * inverse[at(k, j)];
        expect(std::abs(one - (i == j)) < 1e-12, "an inverse");
      }
    }
    std::vector<double> singular(original.size(), 0);
    for (int i = 0; i < d; ++i) singular[at(i, i)] = i + 1 < d;
    expect(!factor.factorise(singular.data(), d, leading, 1e-12), "a singular matrix is refused");
  }
}

// Shares read what was written before their round, and are done when it returns, whether helpers sleep between or not.
void rounds_are_in_step() {
  constexpr int kMembers = 3, kRounds = 10000;
  for (int repeat = 0; repeat < 3; ++repeat) {
    long given = 0, got[kMembers] = {}, expected = 0, shared = 0;
    {
      Rounds rounds(kMembers, [&](int member) { got[member] += given; });
      for (int round = 0; round < kRounds; ++round) {
        if (round % 2500 == 2499) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (!rounds.ready()) {
          std::this_thread::sleep_for(std::chrono::microseconds(20));
          continue;
        }
        given = round;
        rounds.run([&] { got[0] += given; });
        expected += round;
        ++shared;
      }
      for (int member = 0; member < rounds.size(); ++member) expect(got[member] == expected, "every member's rounds");
    }
    std::printf("%ld of %d rounds were shared\n", shared, kRounds);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // past the rest that a busy core asks for
  }
}

// A thread of the caller writes to triplets after they were surveyed: nothing is written out of bounds, and it is
// noticed.
void triplets_may_change_under_the_copy() {
  constexpr Offset n = 200'000, n_rows = n, n_cols = 3;
  for (const bool sorted : {true, false}) {
    std::vector<std::int64_t> row(n), col(n, 1);
    std::vector<double> value(n, 1.5);
    for (Offset k = 0; k < n; ++k) row[static_cast<std::size_t>(k)] = sorted ? k : n - 1 - k;
    std::vector<Offset> offsets(n_rows + 1);
    std::vector<Index> indices(n);
    std::vector<double> values(n);
    const Triplets<std::int64_t, double> triplets{row.data(), col.data(), value.data(), n, n_rows, n_cols};
    const auto copied = [&](int n_threads) {
      if (sorted) return copy_triplets(triplets, offsets.data(), indices.data(), values.data(), n_threads);
      return sort_triplets(triplets, n, offsets.data(), indices.data(), values.data(), n_threads) == false;
    };
    for (const int n_threads : {1, 3}) {
      expect(survey_triplets(triplets, n_threads).sound && copied(n_threads), "sound triplets are copied");
      expect(find_fault(Rows<double>{offsets.data(), indices.data(), values.data(), n_rows, n_cols}, n).ok(),
             "and keep the contract");
      for (const Offset at : {Offset{0}, n / 2, n - 1}) {
        const auto k = static_cast<std::size_t>(at);
        for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{n_rows}, std::int64_t{1} << 40}) {
          const auto good = std::exchange(row[k], wrong);
          expect(!copied(n_threads), "a row out of bounds is noticed");
          row[k] = good;
          col[k] = wrong;
          expect(!copied(n_threads), "a column out of bounds is noticed");
          col[k] = 1;
        }
        for (const double wrong : {double{NAN}, double{INFINITY}}) {
          value[k] = wrong;
          expect(!copied(n_threads), "a value that is missing or infinite is noticed");
          value[k] = 1.5;
        }
      }
      if (!sorted) {  // more are known than the survey said
        value[7] = NAN;
        const auto known = survey_triplets(triplets, n_threads).known;
        value[7] = 1.5;
        expect(!sort_triplets(triplets, known, offsets.data(), indices.data(), values.data(), n_threads).has_value(),
               "a value more is noticed");
      }
    }
  }
}

// Rows that go on from one task's triplets to the next.
void rows_across_tasks_are_sorted() {
  constexpr Offset n = 3 << 16;
  for (const Offset repeated : {Offset{0}, Offset{1 << 16}, Offset{(1 << 16) + 1024}, Offset{2 << 16}}) {
    std::vector<std::int32_t> row(n), col(n);
    std::vector<float> value(n, 1);
    for (Offset k = 0; k < n; ++k) col[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(k);
    if (repeated) --col[static_cast<std::size_t>(repeated)];
    std::vector<Offset> offsets(2);
    std::vector<Index> indices(n);
    std::vector<float> values(n);
    const Triplets<std::int32_t, float> triplets{row.data(), col.data(), value.data(), n, 1, n};
    expect(copy_triplets(triplets, offsets.data(), indices.data(), values.data(), 2) == (repeated == 0),
           "a column that comes twice is noticed across tasks and pieces");
    expect(sort_triplets(triplets, n, offsets.data(), indices.data(), values.data(), 2) == (repeated != 0),
           "and is said to come twice");
  }
}

}  // namespace

int main() {
  faults_are_found();
  columns_are_rows_transposed();
  every_path_has_the_same_gram();
  losses_survive_large_values();
  slopes_are_subgradients();
  dual_steps_are_those_of_the_definition();
  solvers_of_whole_grams_reach_the_optimum();
  factors_solve_and_invert();
  rounds_are_in_step();
  triplets_may_change_under_the_copy();
  rows_across_tasks_are_sorted();
  if (failures == 0) std::puts("all core tests passed");
  return failures == 0 ? 0 : 1;
}
