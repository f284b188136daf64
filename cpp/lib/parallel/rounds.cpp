#include "lacunar/parallel/rounds.hpp"

#include <algorithm>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace lacunar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kSpin{50};     // longer than what lies between two rounds
constexpr std::chrono::microseconds kNormal{100};  // for a thread to wake or end where a core is free
constexpr int kLooks = 64;                         // at a number between two looks at the clock
constexpr int kRestsPerLoss = 20;                  // times as long alone after a wait for a core: it costs 5 %

// When helpers are worth asking again, of all calls: a core that is busy now is so in the next call, too.
std::atomic<Clock::rep> quiet_until{0};

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ __volatile__("isb");
#endif
}

// Whether the number stops being `old` soon.
bool changes(const std::atomic<std::int32_t>& number, std::int32_t old) {
  const auto since = Clock::now();
  do {
    for (int look = 0; look < kLooks; ++look) {
      if (number.load(std::memory_order_acquire) != old) return true;
      relax();
    }
  } while (Clock::now() - since < kSpin);
  return false;
}

}  // namespace

bool Rounds::quiet() { return Clock::now().time_since_epoch().count() < quiet_until.load(std::memory_order_relaxed); }

void Rounds::lost(Clock::time_point since) {
  const auto now = Clock::now();
  if (now - since > kNormal) quiet_until = (now + kRestsPerLoss * (now - since)).time_since_epoch().count();
}

Rounds::Rounds(int n_threads, std::function<void(int)> share)
    : share_(std::move(share)), team_(std::max(n_threads, 1) - 1) {
  if (quiet()) return;
  int member = 1;
  try {
    for (; member < n_threads; ++member) {
      Helper& own = helpers_.emplace_back();
      team_.start([this, member, &own] { serve(member, own); });
    }
  } catch (const std::exception&) {  // a thread did not start, or has no memory: those that did start go on
    if (size() > member) helpers_.pop_back();
  }
}

// A thread that sleeps takes its turn on a busy core before it ends.
Rounds::~Rounds() {
  ask(Task::leave);
  const auto since = Clock::now();
  team_.join();
  lost(since);
}

void Rounds::serve(int member, Helper& own) {
  for (Number last = 0;;) {
    if (!changes(asked_, last)) {
      own.asleep = true;
      asked_.wait(last);
    }
    own.asleep.store(false, std::memory_order_relaxed);
    last = asked_.load(std::memory_order_acquire);
    if (task_ == Task::leave) return;
    if (task_ == Task::share) share_(member);
    own.done = last;
    if (waits_) own.done.notify_one();
  }
}

// All sequentially consistent: a sleeper is either seen here, or has seen the number. Waking nobody is a system call.
void Rounds::ask(Task task) {
  task_ = task;
  asked_ = static_cast<Number>(static_cast<std::uint32_t>(asked_.load(std::memory_order_relaxed)) + 1);
  if (any_asleep()) asked_.notify_all();
}

bool Rounds::any_asleep() const {
  return std::any_of(helpers_.begin(), helpers_.end(), [](const Helper& helper) { return helper.asleep.load(); });
}

bool Rounds::answered() const {
  const Number round = asked_.load(std::memory_order_relaxed);
  return std::all_of(helpers_.begin(), helpers_.end(),
                     [&](const Helper& helper) { return helper.done.load(std::memory_order_acquire) == round; });
}

bool Rounds::ready() {
  if (helpers_.empty()) return false;
  if (asking_) {
    asking_ = !answered();
    return !asking_;
  }
  const bool asleep = any_asleep();
  if (!asleep && !resting_) return true;
  if (quiet()) return false;
  resting_ = false;
  if (!asleep) return true;
  ask(Task::answer);
  asking_ = true;
  return false;
}

void Rounds::wait() {
  const Number round = asked_.load(std::memory_order_relaxed);
  const Number before = static_cast<Number>(static_cast<std::uint32_t>(round) - 1);
  for (Helper& helper : helpers_) {
    if (changes(helper.done, before)) continue;
    const auto since = Clock::now();
    waits_ = true;
    helper.done.wait(before);
    waits_ = false;
    lost(since);
    resting_ = true;
  }
}

}  // namespace lacunar
