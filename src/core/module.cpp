// Table of contents of lacunar._core: one bind_*() a line.
#include <pybind11/pybind11.h>

namespace lacunar::bind {
void bind_algorithm_one(pybind11::module_& m);
void bind_blocks(pybind11::module_& m);
void bind_columns(pybind11::module_& m);
void bind_donors(pybind11::module_& m);
void bind_dual(pybind11::module_& m);
void bind_factor_sums(pybind11::module_& m);
void bind_forest(pybind11::module_& m);
void bind_ingest(pybind11::module_& m);
void bind_karma_gram(pybind11::module_& m);
void bind_meg(pybind11::module_& m);
void bind_meg_parts(pybind11::module_& m);
void bind_observed(pybind11::module_& m);
void bind_pair_pool(pybind11::module_& m);
void bind_pair_sums(pybind11::module_& m);
void bind_primal(pybind11::module_& m);
void bind_rls(pybind11::module_& m);
void bind_row_products(pybind11::module_& m);
void bind_selected_inverse(pybind11::module_& m);
void bind_system(pybind11::module_& m);
}  // namespace lacunar::bind

PYBIND11_MODULE(_core, m, pybind11::mod_gil_not_used()) {
  m.doc() = "The compiled core of lacunar. Private: what arrays hold is trusted to have passed lacunar.observed.door.";
  lacunar::bind::bind_algorithm_one(m);
  lacunar::bind::bind_blocks(m);
  lacunar::bind::bind_columns(m);
  lacunar::bind::bind_donors(m);
  lacunar::bind::bind_dual(m);
  lacunar::bind::bind_factor_sums(m);
  lacunar::bind::bind_forest(m);
  lacunar::bind::bind_ingest(m);
  lacunar::bind::bind_karma_gram(m);
  lacunar::bind::bind_meg_parts(m);  // before what is made of them
  lacunar::bind::bind_meg(m);
  lacunar::bind::bind_observed(m);
  lacunar::bind::bind_pair_pool(m);
  lacunar::bind::bind_pair_sums(m);
  lacunar::bind::bind_primal(m);
  lacunar::bind::bind_rls(m);
  lacunar::bind::bind_row_products(m);
  lacunar::bind::bind_selected_inverse(m);
  lacunar::bind::bind_system(m);
}
