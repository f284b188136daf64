#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {
namespace {

std::atomic<InterruptProbe> probe{nullptr};
thread_local bool uninterrupted = false;

}  // namespace

void set_interrupt_probe(InterruptProbe new_probe) { probe = new_probe; }

Uninterrupted::Uninterrupted() { uninterrupted = true; }
Uninterrupted::~Uninterrupted() { uninterrupted = false; }

void InterruptCheck::look() {
  spent_ = 0;
  if (stop_ != nullptr) {
    if (stop_->load(std::memory_order_relaxed)) throw Stopped{};
    return;
  }
  if (uninterrupted) return;
  const auto now = Clock::now();
  if (now - asked_ < kPause) return;
  if (const InterruptProbe ask = probe) ask();
  asked_ = Clock::now();
}

}  // namespace lacunar
