// A file of API keys: who may ask, for which tenant, how much. The keys themselves are not in it, only their hashes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cluster-config/schema/topology.hpp"
#include "messages/base/criticality.hpp"

namespace signalbox::config {

struct ApiKey {
  std::string name;
  Digest hash;         ///< of the key, with the file's salt
  std::string tenant;  ///< empty: its requests name their tenant
  Criticality most = Criticality::critical;
  double requests_per_minute = 0;  ///< 0: no limit
  double tokens_per_minute = 0;
  Place place;
};

struct ApiKeys {
  std::array<std::uint8_t, 16> salt{};
  std::vector<ApiKey> keys;

  /// What a file holds of this key. A key that was made at random needs no slow hash: there is nothing to guess.
  Digest hash(std::string_view key) const { return keyed_digest(salt, key); }
};

/// Either the keys or every mistake, in the file's order.
struct ParsedApiKeys {
  std::optional<ApiKeys> keys;
  std::vector<Mistake> mistakes;
};
ParsedApiKeys parse_api_keys(std::string_view text);

/// The beginning of a file, and one key's part of it, as parse_api_keys() reads them.
std::string api_keys_head(const ApiKeys& keys);
std::string api_key_entry(const ApiKey& key);

}  // namespace signalbox::config
