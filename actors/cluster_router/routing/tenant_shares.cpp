#include "actors/cluster_router/routing/tenant_shares.hpp"

#include <algorithm>
#include <cmath>

#include "messages/base/rng.hpp"

namespace signalbox::routing {

namespace {

constexpr double most_half_lives = 60;  // then all sums are brought back: doubles keep 53 bits

}  // namespace

std::uint64_t TenantShares::key_of(ClassIndex request_class, std::uint64_t tenant) {
  const std::uint64_t key = mix64(tenant ^ mix64(request_class.value + 1));
  return key == 0 ? 1 : key;
}

void TenantShares::clear() {
  sums_.clear();
  keys_.clear();
}

double TenantShares::weight_at(Instant now) {
  if (epoch_ == never_yet) epoch_ = now;
  const double half_lives = to_seconds(now - epoch_) / half_life_s;
  if (half_lives < most_half_lives) return std::exp2(half_lives);
  for (const std::uint64_t key : keys_) sums_.get(key) *= std::exp2(-half_lives);
  epoch_ = now;
  return 1;
}

void TenantShares::charge(ClassIndex request_class, std::uint64_t tenant, double tokens, Instant now) {
  const double weight = weight_at(now);
  const std::uint64_t key = key_of(request_class, tenant);
  if (sums_.find(key) == nullptr) {
    if (keys_.size() >= most_tenants) forget_half();
    keys_.push_back(key);
  }
  double& sum = sums_.get(key);
  sum = std::max(0.0, sum + tokens * weight);
}

double TenantShares::used(ClassIndex request_class, std::uint64_t tenant) const {
  const double* sum = sums_.find(key_of(request_class, tenant));
  return sum == nullptr ? 0.0 : *sum;
}

void TenantShares::forget_half() {
  const auto middle = keys_.begin() + static_cast<std::ptrdiff_t>(keys_.size() / 2);
  std::nth_element(keys_.begin(), middle, keys_.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return *sums_.find(a) > *sums_.find(b); });
  for (auto key = middle; key != keys_.end(); ++key) sums_.erase(*key);
  keys_.erase(middle, keys_.end());
}

}  // namespace signalbox::routing
