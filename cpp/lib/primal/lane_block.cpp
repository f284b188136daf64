#include "lacunar/primal/lane_block.hpp"

#include <algorithm>

#include "lacunar/observed/row_parts.hpp"

namespace lacunar {
namespace {

constexpr Offset kCachedBytes = 24 << 10;
constexpr Offset kEntriesAtOnce = 1 << 16;  // between two looks for an interrupt

}  // namespace

template <class T>
void LaneBlock<T>::load(const Rows<T>& table, const double* scale, const double* base, const Offset* rows, Offset count,
                        Offset outputs) {
  expansion_ =
      count <= kernels_of<T>().online.narrow.lanes ? kernels_of<T>().online.narrow : kernels_of<T>().online.wide;
  lanes_ = expansion_.lanes;
  outputs_ = outputs;
  Offset entries = 0;
  for (Offset l = 0; l < count; ++l) entries += table.offsets[rows[l] + 1] - table.offsets[rows[l]];
  // Where most columns are in no lane, the others get slots; but finding those costs more than a place each that is
  // cached.
  by_slot_ = entries < table.n_cols && table.n_cols * lanes_ * static_cast<Offset>(sizeof(T) + 1) > kCachedBytes;
  slot_.resize(static_cast<std::size_t>(by_slot_ ? table.n_cols : 0));
  used_.clear();
  const auto places = static_cast<std::size_t>((by_slot_ ? entries + 1 : table.n_cols) * lanes_);
  values_.resize(std::max(values_.size(), places));
  seen_.resize(values_.size());
  scale_.assign(static_cast<std::size_t>(scale == nullptr ? 0 : lanes_), T{0});
  sums_.assign(static_cast<std::size_t>(lanes_ * outputs), 0.0);
  for (Offset l = 0; l < count; ++l) {
    if (scale != nullptr) scale_[static_cast<std::size_t>(l)] = static_cast<T>(scale[rows[l]]);
    if (base != nullptr)
      for (Offset k = 0; k < outputs; ++k)
        sums_[static_cast<std::size_t>(k * lanes_ + l)] = base[rows[l] * outputs + k];
    for (Offset p = table.offsets[rows[l]]; p < table.offsets[rows[l] + 1]; ++p) {
      Offset place = table.indices[p];
      if (by_slot_) {
        Index& slot = slot_[static_cast<std::size_t>(place)];
        if (slot == 0) {
          used_.push_back(table.indices[p]);
          slot = static_cast<Index>(used_.size());
        }
        place = slot;
      }
      values_[static_cast<std::size_t>(place * lanes_ + l)] = table.values[p];
      seen_[static_cast<std::size_t>(place * lanes_ + l)] = 1;
    }
  }
  in_use_ = by_slot_ ? (static_cast<Offset>(used_.size()) + 1) * lanes_ : table.n_cols * lanes_;
}

template <class T>
void LaneBlock<T>::clear() {
  std::fill_n(values_.begin(), in_use_, T{0});
  std::fill_n(seen_.begin(), in_use_, std::uint8_t{0});
  for (Index column : used_) slot_[static_cast<std::size_t>(column)] = 0;
}

template <class T>
void LaneBlock<T>::add(const Rows<T>& support, const T* scale, const double* coef, Offset first, Offset last,
                       const RowKernel<T>& kernel, InterruptCheck& check) {
  const LaneGroup<T> group{values_.data(), seen_.data(), by_slot_ ? slot_.data() : nullptr, scale_.data()};
  while (first < last) {  // a support row after the other: pieces change no bit
    const Offset stop = row_behind(support, first, last, kEntriesAtOnce);
    expansion_.run(support, scale, coef, first, stop, outputs_, group, kernel, sums_.data());
    check.after((support.offsets[stop] - support.offsets[first] + (4 + outputs_) * (stop - first)) * lanes_ / 8);
    first = stop;
  }
}

template class LaneBlock<float>;
template class LaneBlock<double>;

}  // namespace lacunar
