// A row's values and additions on a weight table, in turn, by threads that each have a part of the table: of the
// outputs, or of its width where the row is dense: in long calls each thread has that part in memory of its own, as
// else a core fetches ahead from the other's. Every sum is added up in the order of one thread, so its bits are the
// same.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/lines.hpp"
#include "lacunar/parallel/rounds.hpp"
#include "lacunar/primal/primal.hpp"

namespace lacunar {

// What dense rows of gamma 2 add to a table that is not read before the end: it waits until there are 64 of them, which
// then share one pass over the table.
template <class T>
class Backlog {
 public:
  Backlog(const FeatureMap& map, Offset outputs, Offset most_rows);  // all the memory that it will ever need

  bool empty() const { return rows_ == 0; }
  bool full() const { return rows_ == most_; }
  void begin_row(const Featurizer<T>& features);  // unless it is full
  void add(Offset output, double c);              // c times that row
  // Additions to parts [begin, end) of an output; they wait on until `clear`.
  void write(T* table, Offset output, Offset begin, Offset end) const;
  void clear();

 private:
  Offset width_, outputs_, most_, rows_ = 0;
  LineVector<T> x_;                    // (rows, width)
  std::vector<std::uint64_t> met_;     // (rows of the table)
  std::vector<T> c_;                   // (outputs, 64)
  std::vector<std::uint64_t> wanted_;  // (outputs)
};

template <class T>
class PrimalTeam {
 public:
  // first and second (null or not) as in primal_descend.
  PrimalTeam(const FeatureMap& map, const TrainingSet<T>& training, T* first, T* second, int n_threads);
  ~PrimalTeam();  // after `finish`
  PrimalTeam(const PrimalTeam&) = delete;
  PrimalTeam& operator=(const PrimalTeam&) = delete;

  void prefetch_start(Offset row) const { own_.prefetch_start(row); }
  void prefetch(Offset row) const { own_.prefetch(row); }
  Offset operations() const { return own_.operations(); }

  // f (outputs) of the first table at row order[place].
  void values(Offset place, double* f) {
    new_row_ = true;
    if (rounds_)
      values_by_all(place, f);
    else
      values_alone(training_.order[place], f);
  }
  // first += c features and second += d features of that row; at once, or with the next call of this or of `values`.
  void add(Offset output, double c, double d = 0) {
    if (d != 0 && backlog_) d = put_off(output, d);
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
  // Columns of every row of a table (rows, outputs, width) from column `begin` of outputs width on.
  struct Piece {
    T* table;
    Offset stride, begin;
  };

  bool backlog_worth() const;
  double put_off(Offset output, double d);  // 0, or d where the row is sparse and cannot wait
  void write_backlog();
  int members_worth(int n_threads) const;
  Offset work_of(Offset entries) const;
  Cut cut_of(Offset entries) const;
  Offset units_of(Cut cut) const;
  bool pieces_worth() const;
  void make_pieces();
  Offset column_of(Offset part) const;  // where a part of a row of all outputs begins
  Piece piece_of(int member);           // of the first table
  void fill_piece(int member);
  void join_pieces();
  template <class Visit>
  void each_share(Cut cut, int member, Visit visit) const;
  void dot_parts(int member, const Featurizer<T>& features);
  void add_parts(int member, const Featurizer<T>& features, const Addition& addition);
  void share(int member);  // what is added to one row, and the values of the next one
  void share_parts(int member, Featurizer<T>& features);
  void share_outputs(int member, Featurizer<T>& features);
  void next_row(Featurizer<T>& features) const;
  void write_added();
  void values_by_all(Offset place, double* f);
  void values_of_sums(double* f) const;
  void values_alone(Offset row, double* f);
  void add_now(const Addition& addition);

  const FeatureMap& map_;
  const TrainingSet<T>& training_;
  T *first_, *second_;
  Featurizer<T> own_;
  std::deque<Featurizer<T>> others_;  // of the helpers
  Cut cut_ = Cut::none;
  Offset place_ = 0;                   // of the row whose values are wanted
  std::vector<Addition> added_;        // to the row before it, and not yet in the tables
  std::vector<double> sums_;           // (outputs, gamma, parts), or (outputs)
  std::optional<Backlog<T>> backlog_;  // of the second table
  bool new_row_ = false;               // nothing of it is in the backlog yet
  std::vector<LineVector<T>> pieces_;  // of the first table, each member's in memory of its own; or empty
  bool in_pieces_ = false;             // they hold the table now
  bool filling_ = false;               // in this round
  std::optional<Rounds> rounds_;       // joined before all else goes
};

}  // namespace lacunar
