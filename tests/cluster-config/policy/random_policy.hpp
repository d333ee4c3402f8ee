// Random policies as plain data, their text, and what they mean by the shortest reading of docs/policy.md: the reference that
// the compiler is held against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "messages/base/rng.hpp"

namespace signalbox::policy::test {

struct PlainVersion {
  int major = 0, minor = 0;
};

struct PlainClass {
  std::string name;
  std::vector<std::string> tenants;
  std::string model;
  std::string op;  ///< "", "=", ">=", "<=", ".."
  PlainVersion version, version_high;
  std::string criticality;
  std::vector<std::string> asked;  ///< empty: any
  std::optional<std::pair<int, int>> tokens;
  std::vector<std::string> zones;  ///< empty: any
};

struct PlainModel {
  std::string name;
  PlainVersion low, high;
};

struct PlainPolicy {
  std::vector<PlainModel> models;
  std::vector<PlainClass> classes;
  int otherwise = 403;
};

struct PlainRequest {
  std::string tenant, model, version, asked;
  int tokens = 0;
};

/// The class's name, or "reject STATUS".
struct PlainAnswer {
  std::string outcome;
  std::string criticality;  ///< of an admitted request
};

PlainPolicy random_policy(Rng& rng);
PlainRequest random_request(const PlainPolicy& policy, Rng& rng);
/// With random layout, comments and optional statements.
std::string text_of(const PlainPolicy& policy, Rng& rng);
PlainAnswer answer(const PlainPolicy& policy, const PlainRequest& request);

}  // namespace signalbox::policy::test
