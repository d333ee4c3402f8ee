// What makes Newton's system easy: the part of it that rows of one group have in common.
//
// Where engines are idle or full their loads hardly follow their prices, and all prices of a model can rise together almost
// freely: conjugate gradients would take long to find out. So the system is preconditioned by the same system with each group
// of rows taken as one row, which is solved exactly: its matrix has one row per group.
#pragma once

#include <Eigen/Cholesky>
#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/coarse.hpp"
#include "optimizer/solve/proximal.hpp"

namespace signalbox::optimizer {

class GroupPreconditioner {
 public:
  GroupPreconditioner(const Problem& problem, const std::vector<std::uint32_t>& group_of);
  /// For the system  diagonal - sum over the rows of pull pull' / slope.
  void build(const Proximal& rows, const std::vector<double>& diagonal,
             const std::vector<std::uint32_t>& engines);
  /// out = about the inverse of the system times `in`, for the engines of build().
  void apply(const std::vector<double>& in, std::vector<double>& out);

 private:
  void gather(const Proximal& rows, std::size_t group);
  void factorise(const std::vector<double>& slope);

  struct Entry {
    std::uint32_t index;
    double value;
  };
  std::vector<std::vector<std::uint32_t>> sources_of_;  ///< by group
  const std::vector<std::uint32_t>* engines_ = nullptr;
  std::vector<double> inverse_diagonal_, scratch_;
  std::vector<std::uint32_t> touched_;
  std::vector<Entry> pulls_;  ///< by group: engine and the group's pull there
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> engine_begin_;
  std::vector<Entry> by_engine_;  ///< the same by engine: group and pull
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::VectorXd levels_;
};

}  // namespace signalbox::optimizer
