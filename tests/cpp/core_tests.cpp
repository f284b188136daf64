// Tests of the core without Python. Built and run by .ci/core: a debug build, so that its assertions look, under the
// sanitizers.
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "lacunar/karma_gram.hpp"
#include "lacunar/losses.hpp"
#include "lacunar/observed.hpp"
#include "lacunar/rounds.hpp"
#include "lacunar/small_dense.hpp"

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
  for (const PointLoss loss : {PointLoss::hinge, PointLoss::squared_hinge, PointLoss::logistic})
    expect(coordinate_gap(loss, best_beta(loss, .3, .2, 1, 1, 0, 0), .2, 1, 1, 0) < 1e-9,
           "the best coordinate has no gap");
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

}  // namespace

int main() {
  faults_are_found();
  columns_are_rows_transposed();
  every_path_has_the_same_gram();
  losses_survive_large_values();
  factors_solve_and_invert();
  rounds_are_in_step();
  if (failures == 0) std::puts("all core tests passed");
  return failures == 0 ? 0 : 1;
}
