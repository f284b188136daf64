// What a kernel reports instead of throwing.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

enum class Status { ok, offsets_decrease, index_negative, index_too_large, index_unsorted, index_repeated, not_finite };

// The first failure in row order; position counts observed entries from the start of the table.
struct Failure {
  Status status = Status::ok;
  Offset row = -1;
  Offset position = -1;

  bool ok() const { return status == Status::ok; }
};

}  // namespace lacunar
