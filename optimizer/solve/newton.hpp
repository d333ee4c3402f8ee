// Newton's method on the proximal dual: the prices at which what the rows send is what the engines offer.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"
#include "optimizer/solve/groups.hpp"
#include "optimizer/solve/proximal.hpp"

namespace signalbox::optimizer {

struct NewtonOptions {
  std::uint32_t max_steps = 8;
  double tolerance =
      2e-3;  ///< of the work that is sent too much or too little, valued at its price, of all work's value
};

struct NewtonResult {
  std::uint32_t steps = 0;
  std::uint32_t products = 0;  ///< of the Hessian and a vector
  double unbalanced = 0;
};

/// Moves `price` towards the maximum of the proximal dual and leaves the rows' answer to it in `rows`. The system of a step is
/// solved by conjugate gradients: with the centre near the solution its condition is mild.
class Newton {
 public:
  /// Rows of a group answer prices about alike.
  Newton(const Problem& problem, const std::vector<std::uint32_t>& group_of);
  NewtonResult balance(Proximal& rows, const NewtonOptions& options, std::vector<double>& price);

 private:
  void measure(Proximal& rows, const std::vector<double>& price);
  void build(const Proximal& rows, const std::vector<double>& price);
  void apply(const Proximal& rows, const std::vector<double>& in, std::vector<double>& out) const;
  std::uint32_t solve(const Proximal& rows);
  void shorten(const Proximal& rows);
  bool search(Proximal& rows, std::vector<double>& price);
  double along_step() const;

  const Problem& problem_;
  std::vector<std::uint32_t> engines_;  ///< those with a ceiling
  std::vector<std::uint32_t>
      free_;  ///< those whose price may move: not the idle ones, whose price is as low as it can be
  std::vector<double> excess_, diagonal_, scaled_, step_, residual_, direction_, product_, trial_;
  std::vector<double> inverse_slope_;  ///< by part of the rows
  std::vector<double> strongest_, most_,
      least_;  ///< by engine: its strongest pull, and how far its price may move for that row
  double unbalanced_ = 0.0;
  GroupPreconditioner groups_;
};

}  // namespace signalbox::optimizer
