#include "cluster-config/schema/api_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cluster-config/schema/reader.hpp"

namespace signalbox::config {
namespace {

ApiKey read_key(const Section& s) {
  ApiKey out;
  out.name = s.text("name");
  if (const auto hash = Digest::from_hex(s.text("hash")))
    out.hash = *hash;
  else if (s.has("hash"))
    s.mistake("hash", fmt::format("'key.hash' of key '{}' is not 64 hexadecimal digits", out.name),
              "let `signalbox apikey new` write it");
  out.tenant = s.text("tenant");
  out.most = parse_criticality(s.text("criticality")).value_or(Criticality::sheddable);
  out.requests_per_minute = s.number("requests_per_minute");
  out.tokens_per_minute = s.number("tokens_per_minute");
  out.place = s.place();
  return out;
}

void check_unique(const std::vector<ApiKey>& keys, std::vector<Mistake>& mistakes) {
  std::map<std::string, int> names;
  std::map<Digest, const ApiKey*> hashes;
  for (const ApiKey& key : keys) {
    if (const auto [first, fresh] = names.emplace(key.name, key.place.line); !fresh && !key.name.empty())
      mistakes.push_back({key.place, fmt::format("a second key '{}'", key.name),
                          fmt::format("the first is in line {}", first->second)});
    if (const auto [first, fresh] = hashes.emplace(key.hash, &key); !fresh && !key.hash.is_zero())
      mistakes.push_back({key.place,
                          fmt::format("key '{}' has the hash of key '{}'", key.name, first->second->name),
                          "a key belongs to one entry"});
  }
}

}  // namespace

ParsedApiKeys parse_api_keys(std::string_view text) {
  ParsedApiKeys out;
  Document document(text, out.mistakes, api_keys_file());
  if (!document.is_toml()) return out;
  ApiKeys keys;
  const Section top = document.top();
  const std::string salt = top.text("salt");
  if (const auto padded = Digest::from_hex(salt + std::string(32, '0')); padded && salt.size() == 32)
    std::copy_n(padded->bytes.begin(), keys.salt.size(), keys.salt.begin());
  else if (top.has("salt"))
    top.mistake("salt", "'salt' is not 32 hexadecimal digits",
                "begin a new file with `signalbox apikey new`");
  for (const Section& s : document.tables("key")) keys.keys.push_back(read_key(s));
  check_unique(keys.keys, out.mistakes);
  std::ranges::stable_sort(out.mistakes, {},
                           [](const Mistake& m) { return std::tuple(m.place.line, m.place.column); });
  if (out.mistakes.empty()) out.keys = std::move(keys);
  return out;
}

std::string api_keys_head(const ApiKeys& keys) {
  return fmt::format(
      "# API keys of a Signalbox fleet, written by `signalbox apikey`. Hashes only: a key cannot be read "
      "from here.\n"
      "salt = \"{}\"\n",
      to_hex(keys.salt));
}

std::string api_key_entry(const ApiKey& key) {
  std::string out = fmt::format("\n[[key]]\nname = \"{}\"\nhash = \"{}\"\n", key.name, key.hash.hex());
  if (!key.tenant.empty()) out += fmt::format("tenant = \"{}\"\n", key.tenant);
  if (key.most != Criticality::critical) out += fmt::format("criticality = \"{}\"\n", to_string(key.most));
  if (key.requests_per_minute > 0) out += fmt::format("requests_per_minute = {}\n", key.requests_per_minute);
  if (key.tokens_per_minute > 0) out += fmt::format("tokens_per_minute = {}\n", key.tokens_per_minute);
  return out;
}

}  // namespace signalbox::config
