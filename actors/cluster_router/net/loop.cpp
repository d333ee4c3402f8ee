#include "actors/cluster_router/net/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace signalbox::net {
namespace {

/// What a turn reads is written at its end, so an event waits for all that are read with it.
constexpr std::size_t events_per_turn = 8;
constexpr std::size_t scratch_bytes = 64 * 1024;
constexpr std::size_t spare_buffers = 64;
constexpr std::size_t spare_buffer_bytes = 128 * 1024;

Instant monotonic_now() {
  return Instant{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

void add_to(int epoll, int fd, Watcher* watcher, std::uint32_t interest) {
  epoll_event event{};
  event.events = interest;
  event.data.ptr = watcher;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

}  // namespace

Loop::Loop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      now_(monotonic_now()),
      events_(events_per_turn),
      scratch_(scratch_bytes) {
  if (epoll_ < 0 || wake_ < 0) throw std::system_error(errno, std::generic_category(), "event loop");
  add_to(epoll_, wake_, nullptr, EPOLLIN | EPOLLET);
}

Loop::~Loop() {
  graveyard_.clear();
  ::close(wake_);
  ::close(epoll_);
}

void Loop::run() {
  while (turn(Duration::max())) {
  }
}

bool Loop::turn(Duration longest) {
  collect(longest);
  while (next_event_ < event_count_) {
    const epoll_event event = events_[next_event_++];
    if (event.data.ptr != nullptr) static_cast<Watcher*>(event.data.ptr)->on_ready(event.events);
  }
  event_count_ = next_event_ = 0;
  fire_timers();
  run_posted();
  finish_turn();
  return !stopped_.load(std::memory_order_acquire);
}

void Loop::collect(Duration longest) {
  const int count = ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), wait_ms(longest));
  if (count < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "epoll_wait");
  event_count_ = static_cast<std::size_t>(std::max(count, 0));
  next_event_ = 0;
  now_ = monotonic_now();
}

int Loop::wait_ms(Duration longest) const {
  if (!later_.empty() || !graveyard_.empty() || stopped_.load(std::memory_order_acquire)) return 0;
  if (!timers_.empty()) longest = std::min(longest, std::max(timers_.front()->key_ - now_, Duration::zero()));
  if (longest > 1h) return 3'600'000;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(longest).count());
}

void Loop::fire_timers() {
  while (!timers_.empty() && timers_.front()->key_ <= now_) {
    Timer& timer = *timers_.front();
    timer.leave_heap();
    const Instant deadline = timer.deadline_;
    if (deadline == end_of_time) continue;
    timer.deadline_ = end_of_time;
    if (deadline <= timer.key_)  // else it was moved, and has its turn among the others
      timer.on_due_();
    else
      timer.arm(deadline);
  }
}

void Loop::run_posted() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(posted_mutex_);
    if (posted_.empty()) return;
    tasks.swap(posted_);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_, &count, sizeof count);
  }
  for (Task& task : tasks) task();
}

void Loop::finish_turn() {
  // Work that later() is given meanwhile belongs to the next turn, so that no chain of it starves the
  // descriptors. An object that is disposed of meanwhile outlives that next turn's work, which may still name
  // it.
  ended_.swap(graveyard_);
  running_.swap(later_);
  for (Task& task : running_) task();
  running_.clear();
  ended_.clear();
}

void Loop::stop() {
  stopped_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_, &one, sizeof one);
}

void Loop::post(Task task) {
  const std::lock_guard lock(posted_mutex_);
  posted_.push_back(std::move(task));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_, &one, sizeof one);
}

void Loop::watch(int fd, Watcher& watcher) {
  add_to(epoll_, fd, &watcher, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void Loop::watch_listener(int fd, Watcher& watcher) { add_to(epoll_, fd, &watcher, EPOLLIN); }

void Loop::unwatch(int fd, Watcher& watcher) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  for (std::size_t i = next_event_; i < event_count_; ++i)
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
}

std::string Loop::take_buffer() {
  if (buffers_.empty()) return {};
  std::string out = std::move(buffers_.back());
  buffers_.pop_back();
  return out;
}

void Loop::give_buffer(std::string&& buffer) {
  std::string taken = std::move(buffer);
  buffer = std::string();
  if (buffers_.size() == spare_buffers || taken.capacity() > spare_buffer_bytes || taken.capacity() < 512)
    return;
  taken.clear();
  buffers_.push_back(std::move(taken));
}

Timer::~Timer() {
  if (at_ != nowhere) leave_heap();
}

void Timer::arm(Instant deadline) {
  deadline_ = deadline;
  if (at_ == nowhere) {
    key_ = deadline;
    loop_.timers_.push_back(this);
    sift_up(loop_.timers_.size() - 1);
  } else if (deadline < key_) {
    key_ = deadline;
    sift_up(at_);
  }
}

void Timer::place(std::size_t at) {
  loop_.timers_[at] = this;
  at_ = at;
}

void Timer::sift_up(std::size_t at) {
  auto& heap = loop_.timers_;
  while (at > 0 && key_ < heap[(at - 1) / 2]->key_) {
    heap[(at - 1) / 2]->place(at);
    at = (at - 1) / 2;
  }
  place(at);
}

void Timer::sift_down(std::size_t at) {
  auto& heap = loop_.timers_;
  for (std::size_t child; (child = 2 * at + 1) < heap.size(); at = child) {
    if (child + 1 < heap.size() && heap[child + 1]->key_ < heap[child]->key_) ++child;
    if (key_ <= heap[child]->key_) break;
    heap[child]->place(at);
  }
  place(at);
}

void Timer::leave_heap() {
  auto& heap = loop_.timers_;
  const std::size_t at = at_;
  Timer* last = heap.back();
  heap.pop_back();
  at_ = nowhere;
  if (last == this) return;
  last->place(at);
  last->sift_up(at);
  last->sift_down(last->at_);
}

}  // namespace signalbox::net
