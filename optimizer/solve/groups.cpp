#include "optimizer/solve/groups.hpp"

namespace signalbox::optimizer {

GroupPreconditioner::GroupPreconditioner(const Problem& problem, const std::vector<std::uint32_t>& group_of)
    : scratch_(problem.engines.size(), 0.0) {
  for (std::uint32_t s = 0; s < group_of.size(); ++s) {
    if (group_of[s] == no_group) continue;
    if (group_of[s] >= sources_of_.size()) sources_of_.resize(group_of[s] + 1);
    sources_of_[group_of[s]].push_back(s);
  }
}

void GroupPreconditioner::build(const Proximal& rows, const std::vector<double>& diagonal,
                                const std::vector<std::uint32_t>& engines) {
  engines_ = &engines;
  inverse_diagonal_.assign(diagonal.size(), 0.0);  // engines that are left out take no part
  for (const std::uint32_t e : engines) inverse_diagonal_[e] = 1.0 / diagonal[e];
  pulls_.clear();
  begin_.assign(1, 0);
  std::vector<double> slope;
  for (std::size_t g = 0; g < sources_of_.size(); ++g) {
    double sum = 0.0;
    for (const std::uint32_t s : sources_of_[g]) sum += rows.parts()[s].slope;
    if (!(sum > 0.0)) continue;
    slope.push_back(sum);
    gather(rows, g);
    begin_.push_back(static_cast<std::uint32_t>(pulls_.size()));
  }
  factorise(slope);
}

void GroupPreconditioner::gather(const Proximal& rows, std::size_t group) {
  touched_.clear();
  for (const std::uint32_t s : sources_of_[group])
    for (std::uint32_t i = rows.parts()[s].begin; i < rows.parts()[s].end; ++i) {
      const auto& pull = rows.pulls()[i];
      if (scratch_[pull.engine] == 0.0) touched_.push_back(pull.engine);
      scratch_[pull.engine] += pull.value;
    }
  for (const std::uint32_t e : touched_) {
    if (inverse_diagonal_[e] > 0.0) pulls_.push_back({e, scratch_[e]});
    scratch_[e] = 0.0;
  }
}

void GroupPreconditioner::factorise(const std::vector<double>& slope) {
  const std::size_t groups = slope.size();
  engine_begin_.assign(inverse_diagonal_.size() + 1, 0);
  for (const Entry& pull : pulls_) ++engine_begin_[pull.index + 1];
  for (std::size_t e = 0; e < inverse_diagonal_.size(); ++e) engine_begin_[e + 1] += engine_begin_[e];
  by_engine_.resize(pulls_.size());
  std::vector<std::uint32_t> next(engine_begin_);
  for (std::uint32_t g = 0; g < groups; ++g)
    for (std::uint32_t i = begin_[g]; i < begin_[g + 1]; ++i)
      by_engine_[next[pulls_[i].index]++] = {g, pulls_[i].value};
  Eigen::MatrixXd matrix =
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(groups), static_cast<Eigen::Index>(groups));
  for (std::size_t e = 0; e < inverse_diagonal_.size(); ++e)
    for (std::uint32_t i = engine_begin_[e]; i < engine_begin_[e + 1]; ++i)
      for (std::uint32_t j = i; j < engine_begin_[e + 1]; ++j)
        matrix(by_engine_[j].index, by_engine_[i].index) -=
            by_engine_[i].value * by_engine_[j].value * inverse_diagonal_[e];
  for (std::uint32_t g = 0; g < groups; ++g) matrix(g, g) += slope[g] * (1.0 + 1e-12);
  factor_.compute(matrix);
  levels_.resize(static_cast<Eigen::Index>(groups));
}

void GroupPreconditioner::apply(const std::vector<double>& in, std::vector<double>& out) {
  for (const std::uint32_t e : *engines_) out[e] = in[e] * inverse_diagonal_[e];
  if (factor_.info() != Eigen::Success) return;
  for (Eigen::Index g = 0; g < levels_.size(); ++g) {
    double sum = 0.0;
    for (std::uint32_t i = begin_[static_cast<std::size_t>(g)]; i < begin_[static_cast<std::size_t>(g) + 1];
         ++i)
      sum += pulls_[i].value * out[pulls_[i].index];
    levels_[g] = sum;
  }
  factor_.solveInPlace(levels_);
  for (Eigen::Index g = 0; g < levels_.size(); ++g)
    for (std::uint32_t i = begin_[static_cast<std::size_t>(g)]; i < begin_[static_cast<std::size_t>(g) + 1];
         ++i)
      out[pulls_[i].index] += pulls_[i].value * inverse_diagonal_[pulls_[i].index] * levels_[g];
}

}  // namespace signalbox::optimizer
