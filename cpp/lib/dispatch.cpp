// Which instruction set this process runs: decided once, on first use.
#include <cstdlib>
#include <string>
#include <string_view>

#include "lacunar/kernels.hpp"

namespace lacunar {

#define LACUNAR_DECLARE(isa)                    \
  namespace isa {                               \
  extern const GramKernels<float> gram_f32;     \
  extern const GramKernels<double> gram_f64;    \
  extern const SmallKernels small_kernels;      \
  extern const MegKernels meg_kernels;          \
  extern const ProductKernels<float> product_f32; \
  extern const ProductKernels<double> product_f64; \
  extern const PrimalKernels<float> primal_f32; \
  extern const PrimalKernels<double> primal_f64; \
  void add_scaled_f32(const float*, double, double*, Offset); \
  void add_scaled_f64(const double*, double, double*, Offset); \
  extern const OnlineKernels<float> online_f32; \
  extern const OnlineKernels<double> online_f64; \
  void dual_sweep(const float*, double, double*, const float*, const float*, const float*, float*, Offset); \
  void count_common(const std::uint64_t*, const std::uint64_t*, Offset, Offset, Offset*); \
  }
LACUNAR_DECLARE(base)
#if defined(LACUNAR_HAS_V4)
LACUNAR_DECLARE(v3)
LACUNAR_DECLARE(v4)
#endif
#undef LACUNAR_DECLARE

namespace {

enum class Isa { base, v3, v4 };

Isa best_isa() {
#if defined(LACUNAR_HAS_V4)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vpopcntdq");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::base;
#else
  return Isa::base;
#endif
}

struct Choice {
  Isa isa = best_isa();
  std::string complaint;

  Choice() {
    const char* asked = std::getenv("LACUNAR_ISA");
    if (asked == nullptr || *asked == '\0') return;
    const std::string_view name = asked;
    const Isa wanted = name == "v4" ? Isa::v4 : name == "v3" ? Isa::v3 : Isa::base;
    if (name != "v4" && name != "v3" && name != "base")
      complaint = "LACUNAR_ISA must be base, v3 or v4; got '" + std::string(name) + "'. Unset it to use the best.";
    else if (wanted > isa)
      complaint = "LACUNAR_ISA=" + std::string(name) + " asks for more than this processor or build offers. Unset it.";
    else
      isa = wanted;
  }
};

const Choice& choice() {
  static const Choice made;
  return made;
}

}  // namespace

const char* isa_name() {
  constexpr const char* names[] = {"base", "v3", "v4"};
  return names[static_cast<int>(choice().isa)];
}

const char* isa_complaint() { return choice().complaint.empty() ? nullptr : choice().complaint.c_str(); }

// The member of the chosen instruction set's namespace.
#if defined(LACUNAR_HAS_V4)
#define LACUNAR_PICK(name) (choice().isa == Isa::v4 ? v4::name : choice().isa == Isa::v3 ? v3::name : base::name)
#else
#define LACUNAR_PICK(name) (base::name)
#endif

template <>
const GramKernels<float>& gram_kernels() {
  return LACUNAR_PICK(gram_f32);
}

template <>
const GramKernels<double>& gram_kernels() {
  return LACUNAR_PICK(gram_f64);
}

template <>
const PrimalKernels<float>& primal_kernels() {
  return LACUNAR_PICK(primal_f32);
}

template <>
const PrimalKernels<double>& primal_kernels() {
  return LACUNAR_PICK(primal_f64);
}

template <>
const ProductKernels<float>& product_kernels() {
  return LACUNAR_PICK(product_f32);
}

template <>
const ProductKernels<double>& product_kernels() {
  return LACUNAR_PICK(product_f64);
}

template <>
AddScaled<float> add_scaled() {
  return LACUNAR_PICK(add_scaled_f32);
}

template <>
AddScaled<double> add_scaled() {
  return LACUNAR_PICK(add_scaled_f64);
}

template <>
const OnlineKernels<float>& online_kernels() {
  return LACUNAR_PICK(online_f32);
}

template <>
const OnlineKernels<double>& online_kernels() {
  return LACUNAR_PICK(online_f64);
}

const SmallKernels& small_kernels() { return LACUNAR_PICK(small_kernels); }

const MegKernels& meg_kernels() { return LACUNAR_PICK(meg_kernels); }

DualSweep dual_sweep() { return LACUNAR_PICK(dual_sweep); }

CountCommon count_common() { return LACUNAR_PICK(count_common); }

}  // namespace lacunar
