#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {
namespace {

std::atomic<InterruptProbe> probe{nullptr};

}  // namespace

void set_interrupt_probe(InterruptProbe new_probe) { probe = new_probe; }

void InterruptCheck::look() {
  spent_ = 0;
  if (stop_ != nullptr) {
    if (stop_->load(std::memory_order_relaxed)) throw Stopped{};
    return;
  }
  const auto now = Clock::now();
  if (now - asked_ < kPause) return;
  if (const InterruptProbe ask = probe) ask();
  asked_ = Clock::now();
}

}  // namespace lacunar
