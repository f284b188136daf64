// A row's values and additions on a weight table, in turn, by threads that each have a part of the table: of the
// outputs, or of its width where the row is dense. Every sum is added up in the order of one thread, so its bits are
// the same.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "lacunar/primal.hpp"
#include "lacunar/rounds.hpp"

namespace lacunar {

template <class T>
class PrimalTeam {
 public:
  // first and second (null or not) as in primal_descend.
  PrimalTeam(const FeatureMap& map, const Lesson<T, double>& lesson, T* first, T* second, int n_threads);
  ~PrimalTeam();  // after `finish`
  PrimalTeam(const PrimalTeam&) = delete;
  PrimalTeam& operator=(const PrimalTeam&) = delete;

  void prefetch_start(Offset row) const { own_.prefetch_start(row); }
  void prefetch(Offset row) const { own_.prefetch(row); }
  Offset operations() const { return own_.operations(); }

  // f (outputs) of the first table at row order[place].
  void values(Offset place, double* f) {
    if (rounds_)
      values_by_all(place, f);
    else
      values_alone(lesson_.order[place], f);
  }
  // first += c features and second += d features of that row; at once, or with the next call of this or of `values`.
  void add(Offset output, double c, double d = 0) {
    if (cut_ == Cut::none)
      add_now({output, c, d});
    else
      added_.push_back({output, c, d});
  }
  void finish();  // tables hold all that was added

 private:
  enum class Cut { none, by_output, by_part };
  struct Addition {
    Offset output;
    double c, d;
  };

  int members_worth(int n_threads) const;
  Offset work_of(Offset entries) const;
  Cut cut_of(Offset entries) const;
  Offset units_of(Cut cut) const;
  void share(int member);  // what is added to one row, and the values of the next one
  void values_by_all(Offset place, double* f);
  void values_alone(Offset row, double* f) {
    own_.load(row);
    for (Offset k = 0; k < lesson_.outputs; ++k) f[k] = own_.dot(first_, lesson_.outputs, k);
  }
  void add_now(const Addition& addition) {
    own_.add(first_, lesson_.outputs, addition.output, addition.c);
    if (addition.d != 0) own_.add(second_, lesson_.outputs, addition.output, addition.d);
  }

  const FeatureMap& map_;
  const Lesson<T, double>& lesson_;
  T *first_, *second_;
  Featurizer<T> own_;
  std::deque<Featurizer<T>> others_;  // of the helpers
  Cut cut_ = Cut::none;
  Offset place_ = 0;              // of the row whose values are wanted
  std::vector<Addition> added_;   // to the row before it, and not yet in the tables
  std::vector<double> sums_;      // (outputs, gamma, parts), or (outputs)
  std::optional<Rounds> rounds_;  // joined before all else goes
};

}  // namespace lacunar
