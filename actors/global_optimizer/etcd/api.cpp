#include "actors/global_optimizer/etcd/api.hpp"

#include <fmt/format.h>
#include <simdjson.h>
#include <sodium.h>

#include <charconv>
#include <chrono>

namespace signalbox::global_optimizer {

namespace {

using simdjson::dom::element;

std::string base64(std::string_view bytes) {
  std::string out(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  out.pop_back();  // its end mark
  return out;
}

std::string from_base64(std::string_view text) {
  std::string out(text.size(), '\0');
  std::size_t length = 0;
  const int done = sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(),
                                     text.size(), nullptr, &length, nullptr, sodium_base64_VARIANT_ORIGINAL);
  out.resize(done == 0 ? length : 0);
  return out;
}

// --- questions

std::string range(std::string_view key) {
  return fmt::format(R"({{"requestRange":{{"key":"{}"}}}})", base64(key));
}

std::string put(std::string_view key, std::string_view value, std::int64_t lease) {
  return fmt::format(R"({{"requestPut":{{"key":"{}","value":"{}","lease":"{}"}}}})", base64(key),
                     base64(value), lease);
}

/// An absent key has revisions of 0.
std::string is_revision(std::string_view key, std::string_view target, std::string_view field,
                        std::int64_t revision) {
  return fmt::format(R"({{"key":"{}","target":"{}","result":"EQUAL","{}":"{}"}})", base64(key), target, field,
                     revision);
}

std::string campaign(const AskEtcd& ask, const EtcdKeys& keys, std::string_view self) {
  return fmt::format(R"({{"compare":[{},{}],"success":[{},{}],"failure":[{},{}]}})",
                     is_revision(keys.leader, "CREATE", "createRevision", 0),
                     is_revision(keys.counter, "MOD", "modRevision", ask.counter_revision),
                     put(keys.leader, self, ask.lease), put(keys.counter, fmt::format("{}", ask.counter), 0),
                     range(keys.leader), range(keys.counter));
}

// --- answers

std::string_view text_at(element parent, std::string_view key) {
  std::string_view text;
  return parent[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// Numbers of 64 bits are written as texts, and left out if they are 0.
template <class Number>
Number number_in(std::string_view text) {
  Number out{};
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

EtcdAnswer lease_in(element body) {
  EtcdAnswer out;
  out.lease = number_in<std::int64_t>(text_at(body, "ID"));
  out.ttl = std::chrono::seconds(number_in<std::int64_t>(text_at(body, "TTL")));
  return out;
}

/// What two ranges found: the leader's key, then the counter's.
EtcdAnswer ranges_in(element body) {
  EtcdAnswer out;
  const auto found = [&body](std::size_t i) {
    return body["responses"].at(i)["response_range"]["kvs"].at(0);
  };
  element row;
  if (found(0).get(row) == simdjson::SUCCESS) out.holder = from_base64(text_at(row, "value"));
  if (found(1).get(row) == simdjson::SUCCESS) {
    out.counter = number_in<std::uint64_t>(from_base64(text_at(row, "value")));
    out.counter_revision = number_in<std::int64_t>(text_at(row, "mod_revision"));
  }
  return out;
}

constexpr std::int64_t code_not_found = 5;

}  // namespace

EtcdKeys etcd_keys(std::string_view fleet) {
  return {fmt::format("signalbox/{}/leader", fleet), fmt::format("signalbox/{}/term", fleet)};
}

EtcdCall call_for(const AskEtcd& ask, const EtcdKeys& keys, std::string_view self) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(ask.ttl).count();
  switch (ask.kind) {
    case AskEtcd::Kind::look:
      return {"/v3/kv/txn", fmt::format(R"({{"success":[{},{}]}})", range(keys.leader), range(keys.counter))};
    case AskEtcd::Kind::grant: return {"/v3/lease/grant", fmt::format(R"({{"TTL":"{}"}})", seconds)};
    case AskEtcd::Kind::campaign: return {"/v3/kv/txn", campaign(ask, keys, self)};
    case AskEtcd::Kind::renew: return {"/v3/lease/keepalive", fmt::format(R"({{"ID":"{}"}})", ask.lease)};
    case AskEtcd::Kind::release: return {"/v3/lease/revoke", fmt::format(R"({{"ID":"{}"}})", ask.lease)};
  }
  return {};
}

Result<EtcdAnswer> read_answer(const AskEtcd& ask, std::string_view body) {
  using Kind = AskEtcd::Kind;
  simdjson::dom::parser parser;
  element root, inner;
  if (parser.parse(simdjson::padded_string(body)).get(root) != simdjson::SUCCESS || !root.is_object())
    return invalid("etcd's answer is not a JSON object");
  EtcdAnswer out;
  if (root["error"].get(inner) == simdjson::SUCCESS) {
    std::int64_t code = 0;
    if (root["code"].get(code) != simdjson::SUCCESS) code = 0;
    if (ask.kind == Kind::release && code == code_not_found) return out;
    const std::string_view said = text_at(root, "message");
    return fail(ErrorKind::unavailable, fmt::format("etcd says: {}", said.empty() ? "an error" : said));
  }
  // A stream of answers wraps each.
  if (ask.kind == Kind::renew && root["result"].get(inner) == simdjson::SUCCESS) root = inner;
  if (root["header"].get(inner) != simdjson::SUCCESS) return invalid("etcd's answer has no header");
  switch (ask.kind) {
    case Kind::look: return ranges_in(root);
    case Kind::grant:
    case Kind::renew: return lease_in(root);
    case Kind::campaign:
      if (root["succeeded"].get(out.won) != simdjson::SUCCESS || !out.won) return ranges_in(root);
      return out;
    case Kind::release: return out;
  }
  return out;
}

}  // namespace signalbox::global_optimizer
