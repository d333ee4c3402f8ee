#include "actors/global_optimizer/solver_thread.hpp"

#include "actors/kit/process.hpp"

namespace signalbox::global_optimizer {

namespace {
constexpr Duration look_around = 20ms;  ///< how soon a newer request or the end is noticed
}

SolverThread::SolverThread(optimizer::SolverChildOptions child, optimizer::SolveOptions solve)
    : child_options_(std::move(child)),
      solve_options_(solve),
      thread_([this](std::stop_token stop) { run(std::move(stop)); }) {}

void SolverThread::submit(const Solve& solve, Tell tell) {
  const std::lock_guard lock(mutex_);
  waiting_ = Job{solve, std::move(tell)};
  arrived_.notify_one();
}

std::optional<SolverThread::Job> SolverThread::next(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, stop, [this] { return waiting_.has_value(); });
  return std::exchange(waiting_, std::nullopt);
}

bool SolverThread::is_superseded() {
  const std::lock_guard lock(mutex_);
  return waiting_.has_value();
}

void SolverThread::run(std::stop_token stop) {
  optimizer::SolverChild child(child_options_);
  while (auto job = next(stop)) work(*std::move(job), child, stop);
}

void SolverThread::work(Job job, optimizer::SolverChild& child, std::stop_token stop) {
  optimizer::SolveRequest request;
  request.problem = std::move(job.solve.problem);
  request.options = solve_options_;
  request.warm = std::move(job.solve.warm);
  child.submit(std::move(request), kit::monotonic_now());
  while (!stop.stop_requested() && !is_superseded()) {
    if (auto outcome = child.poll(kit::monotonic_now())) {
      if (*outcome) return job.tell(SolveDone{job.solve.number, **std::move(outcome)});
      const optimizer::SolverFailure& failure = outcome->error();
      return job.tell(SolveFailed{job.solve.number, std::string(to_string(failure.fault)), failure.text});
    }
    child.wait(look_around);
  }
}

}  // namespace signalbox::global_optimizer
