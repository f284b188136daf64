// What fills the table of one instruction set: a line for every file of kernels.
#pragma once

#include "lacunar/kernels.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {

void set_blocks(Kernels& to);
void set_counts(Kernels& to);
void set_dense(Kernels& to);
void set_dual(Kernels& to);
void set_factor(Kernels& to);
void set_gram(Kernels& to);
void set_meg(Kernels& to);
void set_online(Kernels& to);
void set_primal(Kernels& to);
void set_products(Kernels& to);
void set_small(Kernels& to);
void set_all(Kernels& to);

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
