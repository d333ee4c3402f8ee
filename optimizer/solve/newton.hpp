// Newton's method on the proximal dual: the prices at which what the rows send is what the engines offer.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/model/problem.hpp"
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
  explicit Newton(const Problem& problem);
  NewtonResult balance(Proximal& rows, const NewtonOptions& options, std::vector<double>& price);

 private:
  void measure(Proximal& rows, const std::vector<double>& price);
  void build(const Proximal& rows, const std::vector<double>& price);
  void apply(const Proximal& rows, const std::vector<double>& in, std::vector<double>& out) const;
  std::uint32_t solve(const Proximal& rows);
  bool search(Proximal& rows, std::vector<double>& price);
  double along_step() const;

  const Problem& problem_;
  std::vector<std::uint32_t> engines_;  ///< those with a ceiling
  std::vector<double> excess_, diagonal_, inverse_, step_, residual_, direction_, product_, trial_;
  std::vector<double> inverse_slope_;  ///< by source
  double unbalanced_ = 0.0;
};

}  // namespace signalbox::optimizer
