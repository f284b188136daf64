#include "lacunar/rls/latent_rows.hpp"

#include <algorithm>
#include <cassert>
#include <atomic>
#include <vector>

#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/parallel.hpp"
#include "lacunar/rls/lazy_basis.hpp"
#include "lacunar/rls/row_code.hpp"

namespace lacunar {
namespace {

constexpr Offset kRowsATask = 256;

struct Space {  // of one thread
  RowCode row;
  std::vector<double> latent;

  Space(int d, Offset longest) : row(d, longest), latent(static_cast<std::size_t>(row.leading)) {}
};

}  // namespace

template <class T>
Offset latent_rows(const Rows<T>& rows, const double* basis, int d, double ridge, const LatentRows& out,
                   int n_threads) {
  assert(well_ordered(rows));
  std::atomic<Offset> rescued{0};
  const Offset tasks = (rows.n_rows + kRowsATask - 1) / kRowsATask;
  Offset longest = 1;
  for (Offset i = 0; i < rows.n_rows; ++i) longest = std::max(longest, rows.offsets[i + 1] - rows.offsets[i]);
  const auto work = [&](Space& space, Offset task, InterruptCheck& check) {
    auto& [row, latent] = space;
    const Offset first = task * kRowsATask, last = std::min(first + kRowsATask, rows.n_rows);
    for (Offset i = first; i < last; ++i) {
      const int m = static_cast<int>(rows.offsets[i + 1] - rows.offsets[i]);
      gather_rows(basis, d, rows.indices + rows.offsets[i], m, row.leading, row.rows.data());
      row.load(rows.values + rows.offsets[i], m);
      if (!row.factorise(ridge, nullptr, kSingular)) row.rescue(ridge), ++rescued;
      row.solve(row.right, latent);
      if (out.latent != nullptr) std::copy_n(latent.begin(), d, out.latent + i * d);
      if (out.residual != nullptr) out.residual[i] = row.left(latent);
      if (out.inverse != nullptr) row.inverse(out.inverse + i * d * (d + 1) / 2);
      check.after(static_cast<Offset>(d) * d * (m / 2 + d));
    }
  };
  parallel_tasks(n_threads, tasks, [&] { return Space(d, longest); }, work);
  return rescued;
}

template Offset latent_rows<float>(const Rows<float>&, const double*, int, double, const LatentRows&, int);
template Offset latent_rows<double>(const Rows<double>&, const double*, int, double, const LatentRows&, int);

}  // namespace lacunar
