// Compiled once per instruction set into its own namespace: the whole table.
#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {

void set_all(Kernels& to) {
  set_blocks(to);
  set_counts(to);
  set_dense(to);
  set_dual(to);
  set_factor(to);
  set_gram(to);
  set_meg(to);
  set_online(to);
  set_primal(to);
  set_products(to);
  set_small(to);
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
