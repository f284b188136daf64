#include <algorithm>
#include <cmath>
#include <numeric>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/prefetch.hpp"
#include "lacunar/primal/primal.hpp"

namespace lacunar {
namespace {

constexpr Offset kGatherShare =
    14;  // gathering an entry costs what sweeping this many costs: measured on AVX-512 and AVX2
constexpr Offset kAheadBytes = 512;

// Mixes of 64 bits (splitmix64): rows and places are mixed apart and combined by exclusive or, which is 3-independent.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

template <class T>
Featurizer<T>::Featurizer(const FeatureMap& map, const Rows<T>& rows, const double* row_scale)
    : map_(map),
      data_(rows),
      row_scale_(row_scale),
      width_(map.width()),
      parts_(kernels_of<T>().primal.parts(map.width())) {}

// Decided by the row alone: its value must not depend on the rows that come with it.
template <class T>
bool Featurizer<T>::is_sparse(Offset entries) const {
  return map_.hash_bits > 0 || entries * kGatherShare < width_;
}

template <class T>
Offset Featurizer<T>::entries(Offset seen) const {
  return (seen + (map_.constant != 0)) * (map_.indicator != 0 ? 2 : 1);
}

template <class T>
void Featurizer<T>::prefetch(Offset row) const {
  const char* values = reinterpret_cast<const char*>(data_.values + data_.offsets[row]);
  const char* indices = reinterpret_cast<const char*>(data_.indices + data_.offsets[row]);
  for (Offset at = 0; at < kAheadBytes; at += 64) {
    lacunar::prefetch<For::reading>(values + at);
    lacunar::prefetch<For::reading>(indices + at);
  }
}

template <class T>
void Featurizer<T>::prefetch_start(Offset row) const {
  lacunar::prefetch<For::reading>(data_.offsets + row);
  if (row_scale_ != nullptr) lacunar::prefetch<For::reading>(row_scale_ + row);
}

template <class T>
void Featurizer<T>::load(Offset row) {
  const Offset first = data_.offsets[row], last = data_.offsets[row + 1];
  const T scale = row_scale_ == nullptr ? T{1} : static_cast<T>(row_scale_[row]);
  if (!sparse_)
    for (Index place : places_) dense_[static_cast<std::size_t>(place)] = 0;
  const std::size_t n_entries = static_cast<std::size_t>(last - first), seen = n_entries + (map_.constant != 0);
  const std::size_t entries = map_.indicator != 0 ? 2 * seen : seen;
  sparse_ = is_sparse(static_cast<Offset>(entries));
  seen_.resize(seen);
  places_.resize(entries);
  values_.resize(entries);
  for (std::size_t e = 0; e < n_entries; ++e) {
    seen_[e] = places_[e] = data_.indices[first + static_cast<Offset>(e)];
    values_[e] = data_.values[first + static_cast<Offset>(e)] * scale;
  }
  if (map_.constant != 0) {
    seen_[n_entries] = places_[n_entries] = static_cast<Index>(map_.n_cols);
    values_[n_entries] = static_cast<T>(map_.constant) * scale;
  }
  for (std::size_t e = seen; e < entries; ++e) {
    places_[e] = static_cast<Index>(map_.columns() + seen_[e - seen]);
    values_[e] = static_cast<T>(map_.indicator) * scale;
  }
  if (!sparse_) {
    if (dense_.empty()) dense_.assign(static_cast<std::size_t>(width_), T{0});
    for (std::size_t i = 0; i < places_.size(); ++i) dense_[static_cast<std::size_t>(places_[i])] = values_[i];
  }

  const Offset count = static_cast<Offset>(seen);
  ids_.resize(map_.gamma > 1 ? seen + 1 : 1);
  ids_[0] = 0;
  for (std::size_t i = 1; i < ids_.size(); ++i) ids_[i] = 1 + seen_[i - 1];
  if (map_.gamma > 2) {
    const Offset base = 1 + map_.columns();
    for (Offset j = 1; j < count; ++j)  // pair (i, j), i < j, stands at j (j - 1) / 2 + i
      for (Offset i = 0; i < j; ++i) {
        const Offset column = seen_[static_cast<std::size_t>(j)];
        ids_.push_back(static_cast<Index>(base + column * (column - 1) / 2 + seen_[static_cast<std::size_t>(i)]));
      }
  }
  groups_[0] = {0, 1};
  groups_[1] = {1, map_.gamma > 1 ? count : 0};
  groups_[2] = {1 + count, map_.gamma > 2 ? count * (count - 1) / 2 : 0};
  if (map_.hash_bits > 0) hash_ids();
}

template <class T>
void Featurizer<T>::hash_ids() {
  row_hash_.resize(ids_.size());
  place_hash_.resize(places_.size());
  for (std::size_t i = 0; i < ids_.size(); ++i) row_hash_[i] = mixed(static_cast<std::uint64_t>(ids_[i]) << 1);
  for (std::size_t i = 0; i < places_.size(); ++i)
    place_hash_[i] = mixed((static_cast<std::uint64_t>(places_[i]) << 1) | 1);
}

template <class T>
double Featurizer<T>::dot_group(const T* table, Offset stride, const Group& group) const {
  const Index* ids = ids_.data() + group.first;
  if (!sparse_)
    return kernels_of<T>().primal.dot_rows(table, stride, ids, static_cast<int>(group.count), dense_.data(), width_);
  double total = 0;
  const std::size_t entries = places_.size();
  for (Offset i = 0; i < group.count; ++i) {
    T sum[4] = {};
    if (map_.hash_bits > 0) {
      const std::uint64_t row = row_hash_[static_cast<std::size_t>(group.first + i)];
      const int shift = 64 - map_.hash_bits;
      for (std::size_t e = 0; e < entries; ++e) {
        const std::uint64_t at = row ^ place_hash_[e];
        const T value = table[at >> shift] * values_[e];
        sum[e & 3] += (at & 1) != 0 ? value : -value;
      }
    } else {
      const T* weights = table + ids[i] * stride;
      for (std::size_t e = 0; e < entries; ++e) sum[e & 3] += weights[places_[e]] * values_[e];
    }
    total += static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  return total;
}

template <class T>
double Featurizer<T>::dot(const T* table, Offset outputs, Offset output) const {
  const Offset slice = map_.hash_bits > 0 ? map_.table_size() : width_;
  const T* mine = table + output * slice;
  double total = 0;
  for (int g = 0; g < map_.gamma; ++g)
    if (groups_[g].count > 0) total += map_.weight[g] * dot_group(mine, outputs * width_, groups_[g]);
  return total;
}

template <class T>
Offset Featurizer<T>::part_start(Offset part) const {
  return kernels_of<T>().primal.part_start(width_, part);
}

template <class T>
void Featurizer<T>::dot_parts(const T* table, Offset stride, Offset begin, Offset end, double* sums) const {
  for (int g = 0; g < map_.gamma; ++g)
    kernels_of<T>().primal.dot_some(table, stride, ids_.data() + groups_[g].first, static_cast<int>(groups_[g].count),
                                    dense_.data(), width_, begin, end, sums + g * parts_ + begin);
}

template <class T>
double Featurizer<T>::dot_of(const double* sums) const {
  double total = 0;
  for (int g = 0; g < map_.gamma; ++g)
    if (groups_[g].count > 0)
      total += map_.weight[g] * std::accumulate(sums + g * parts_, sums + (g + 1) * parts_, 0.0);
  return total;
}

template <class T>
void Featurizer<T>::add_parts(T* table, Offset stride, Offset begin, Offset end, double c) const {
  kernels_of<T>().primal.add_rows(table, stride, ids_.data(), static_cast<int>(ids_.size()), dense_.data(), width_,
                                  begin, end, static_cast<T>(c));
}

template <class T>
void Featurizer<T>::add(T* table, Offset outputs, Offset output, double c) const {
  const Offset slice = map_.hash_bits > 0 ? map_.table_size() : width_;
  T* mine = table + output * slice;
  const T step = static_cast<T>(c);
  const Offset stride = outputs * width_;
  if (!sparse_) return add_parts(mine, stride, 0, parts_, c);
  const std::size_t entries = places_.size();
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (map_.hash_bits > 0) {
      const int shift = 64 - map_.hash_bits;
      for (std::size_t e = 0; e < entries; ++e) {
        const std::uint64_t at = row_hash_[i] ^ place_hash_[e];
        const T value = step * values_[e];
        mine[at >> shift] += (at & 1) != 0 ? value : -value;
      }
    } else {
      T* weights = mine + ids_[i] * stride;
      for (std::size_t e = 0; e < entries; ++e) weights[places_[e]] += step * values_[e];
    }
  }
}

template <class T>
void Featurizer<T>::copy(T* x, std::uint64_t* met, std::uint64_t bit) const {
  std::copy(dense_.begin(), dense_.end(), x);
  for (Index id : ids_) met[id] |= bit;
}

template <class T>
Offset Featurizer<T>::operations() const {
  return static_cast<Offset>(ids_.size()) * (sparse_ ? static_cast<Offset>(places_.size()) : width_ / 4) + 16;
}

template class Featurizer<float>;
template class Featurizer<double>;

}  // namespace lacunar
