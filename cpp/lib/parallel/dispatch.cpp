// Which instruction set this process runs: decided once, on first use.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>

#if defined(LACUNAR_HAS_V4)
#include <cpuid.h>
#endif

#include "lacunar/kernels.hpp"

namespace lacunar {

// Every instruction set fills the table in its own way; v4_popcount only that part which counts common entries, over
// v4's.
namespace base {
void set_all(Kernels& to);
}
#if defined(LACUNAR_HAS_V4)
namespace v3 {
void set_all(Kernels& to);
}
namespace v4 {
void set_all(Kernels& to);
}
namespace v4_popcount {
void set_counts(Kernels& to);
void set_gram(Kernels& to);
}  // namespace v4_popcount
#endif

namespace {

enum class Isa { base, v3, v4, v4_popcount };
constexpr const char* kNames[] = {"base", "v3", "v4", "v4+vpopcntdq"};

struct Feature {
  const char* name;
  std::uint32_t Processor::* word;
  int bit;
};
// Everything that the compilers may use under -march=x86-64-v3 and -v4 (System V ABI for x86-64, table 3.1).
constexpr Feature kV3[] = {{"sse3", &Processor::leaf1_ecx, 0},     {"ssse3", &Processor::leaf1_ecx, 9},
                           {"fma", &Processor::leaf1_ecx, 12},     {"cmpxchg16b", &Processor::leaf1_ecx, 13},
                           {"sse4.1", &Processor::leaf1_ecx, 19},  {"sse4.2", &Processor::leaf1_ecx, 20},
                           {"movbe", &Processor::leaf1_ecx, 22},   {"popcnt", &Processor::leaf1_ecx, 23},
                           {"osxsave", &Processor::leaf1_ecx, 27}, {"avx", &Processor::leaf1_ecx, 28},
                           {"f16c", &Processor::leaf1_ecx, 29},    {"bmi1", &Processor::leaf7_ebx, 3},
                           {"avx2", &Processor::leaf7_ebx, 5},     {"bmi2", &Processor::leaf7_ebx, 8},
                           {"lahf", &Processor::extended_ecx, 0},  {"lzcnt", &Processor::extended_ecx, 5}};
constexpr Feature kV4[] = {{"avx512f", &Processor::leaf7_ebx, 16},
                           {"avx512dq", &Processor::leaf7_ebx, 17},
                           {"avx512cd", &Processor::leaf7_ebx, 28},
                           {"avx512bw", &Processor::leaf7_ebx, 30},
                           {"avx512vl", &Processor::leaf7_ebx, 31}};
constexpr Feature kPopcount[] = {{"avx512_vpopcntdq", &Processor::leaf7_ecx, 14}};
constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6;  // of XCR0: registers that the system saves

template <std::size_t N>
std::string missing(const Processor& processor, const Feature (&features)[N], std::uint64_t saved,
                    const char* registers) {
  std::string names;
  const auto lack = [&](const std::string& name) { names += (names.empty() ? "" : " ") + name; };
  for (const Feature& feature : features)
    if ((processor.*feature.word >> feature.bit & 1) == 0) lack(feature.name);
  if ((processor.xcr0 & saved) != saved) lack(std::string(registers) + " registers (not saved by the system)");
  return names;
}

struct Offer {
  Isa isa;
  std::string lacks;  // of the next one
};

Offer offer_of(const Processor& processor) {
  if (auto lacks = missing(processor, kV3, kYmm, "ymm"); !lacks.empty()) return {Isa::base, lacks};
  if (auto lacks = missing(processor, kV4, kZmm, "zmm"); !lacks.empty()) return {Isa::v3, lacks};
  if (auto lacks = missing(processor, kPopcount, kZmm, "zmm"); !lacks.empty()) return {Isa::v4, lacks};
  return {Isa::v4_popcount, ""};
}

#if defined(LACUNAR_HAS_V4)
// By the instructions themselves: __builtin_cpu_supports asks the compiler's runtime, and others than libgcc answer 0.
Offer offer_here() {
  Processor processor;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) processor.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) processor.leaf7_ebx = b, processor.leaf7_ecx = c;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) processor.extended_ecx = c;
  if (processor.leaf1_ecx >> 27 & 1) {  // xgetbv is there
    __asm__(".byte 0x0f, 0x01, 0xd0" : "=a"(a), "=d"(d) : "c"(0));
    processor.xcr0 = std::uint64_t{d} << 32 | a;
  }
  return offer_of(processor);
}
#else
Offer offer_here() { return {Isa::base, ""}; }  // the only one built, so nothing is missing for another
#endif

struct Choice {
  Offer offer = offer_here();
  Isa isa = offer.isa;
  std::string complaint;

  Choice() {
    const char* variable = std::getenv("LACUNAR_ISA");
    if (variable == nullptr || *variable == '\0') return;
    const std::string name = variable;
    const auto* const at = std::find(std::begin(kNames), std::end(kNames), name);
    const auto named = static_cast<Isa>(at - std::begin(kNames));
    if (at == std::end(kNames))
      complaint = "LACUNAR_ISA must be base, v3, v4 or v4+vpopcntdq; got '" + name + "'. Unset it to use the best.";
    else if (named > isa)
      complaint = "LACUNAR_ISA=" + name + " asks for more than this processor or build offers" +
                  (offer.lacks.empty() ? "" : ", which lacks " + offer.lacks) + ". Unset it.";
    else
      isa = named;
  }
};

const Choice& choice() {
  static const Choice choice;
  return choice;
}

std::string names_of(const Offer& offer) {
  const std::string name = kNames[static_cast<int>(offer.isa)];
  return offer.lacks.empty() ? name : name + ", then lacks " + offer.lacks;
}

Kernels made_for([[maybe_unused]] Isa isa) {
  Kernels kernels{};
#if defined(LACUNAR_HAS_V4)
  if (isa == Isa::v3) return v3::set_all(kernels), kernels;
  if (isa >= Isa::v4) v4::set_all(kernels);
  if (isa == Isa::v4_popcount) v4_popcount::set_counts(kernels), v4_popcount::set_gram(kernels);
  if (isa >= Isa::v4) return kernels;
#endif
  base::set_all(kernels);
  return kernels;
}

}  // namespace

const char* isa_name() { return kNames[static_cast<int>(choice().isa)]; }

std::string isa_found() { return names_of(choice().offer); }

std::string isa_of(const Processor& processor) { return names_of(offer_of(processor)); }

const char* isa_complaint() { return choice().complaint.empty() ? nullptr : choice().complaint.c_str(); }

const Kernels& kernels() {
  static const Kernels chosen = made_for(choice().isa);
  return chosen;
}

}  // namespace lacunar
