// The files of keys.hpp, as text. Lines of two generations stand beside each other while keys are rotated:
//
//   directory.tsv   signalbox-directory 1 generation G [other H]
//                   id role cluster curve sign [other curve, other sign]      tab-separated, a line for each member
//   fleet.mac       key [tab generation]                                      a line for each generation
//   <id>.secret     signalbox-secret 1, then curve and sign of one or two generations, a line each
#include <sodium.h>
#include <sys/stat.h>

#include <charconv>
#include <set>
#include <sstream>

#include "messages/base/digest.hpp"
#include "messages/bus/files.hpp"
#include "messages/bus/keys.hpp"

namespace signalbox::bus {

namespace {

constexpr std::string_view directory_head = "signalbox-directory\t1\tgeneration\t";
constexpr std::string_view secret_head = "signalbox-secret\t1";

struct Secret {
  Key32 curve;
  Key64 sign;
};

std::string directory_path(const std::string& dir) { return dir + "/directory.tsv"; }
std::string mac_path(const std::string& dir) { return dir + "/fleet.mac"; }
std::string secret_path(const std::string& dir, const ProcessName& id) {
  return fmt::format("{}/{}.secret", dir, id);
}

PublicKeys public_of(const Secret& secret) {
  PublicKeys out;
  crypto_scalarmult_base(out.curve.data(), secret.curve.data());
  crypto_sign_ed25519_sk_to_pk(out.sign.data(), secret.sign.data());
  return out;
}

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> out;
  std::stringstream in(line);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

// --- writing

std::string text_of(const PublicKeys& keys) {
  return fmt::format("\t{}\t{}", to_hex(keys.curve), to_hex(keys.sign));
}

std::string directory_text(const Keyring& keyring) {
  std::string out = fmt::format("{}{}", directory_head, keyring.generation);
  if (keyring.other_generation) out += fmt::format("\tother\t{}", *keyring.other_generation);
  out += "\n";
  for (const auto& [id, member] : keyring.directory.members()) {
    const Identity& identity = member.identity;
    out += fmt::format("{}\t{}\t{}", id, name_of(identity.role),
                       identity.cluster.empty() ? "-" : identity.cluster.str());
    out += text_of(member.keys) + (member.other ? text_of(*member.other) : "") + "\n";
  }
  return out;
}

std::string secret_text(const std::vector<Secret>& secrets) {
  std::string out = fmt::format("{}\n", secret_head);
  for (const Secret& secret : secrets)
    out += fmt::format("{}\n{}\n", to_hex(secret.curve), to_hex(secret.sign));
  return out;
}

std::string mac_text(const std::map<std::uint8_t, Key32>& macs) {
  std::string out;
  for (const auto& [generation, mac] : macs) out += fmt::format("{}\t{}\n", to_hex(mac), generation);
  return out;
}

// --- reading

template <std::size_t N>
Result<std::array<std::uint8_t, N>> key_from_hex(const std::string& hex, const std::string& where) {
  std::array<std::uint8_t, N> out;
  std::size_t length = 0;
  const char* end = nullptr;
  if (sodium_hex2bin(out.data(), N, hex.data(), hex.size(), nullptr, &length, &end) != 0 || length != N ||
      end != hex.data() + hex.size())
    return invalid(fmt::format("not a key of {} hexadecimal digits", 2 * N), where);
  return out;
}

Result<std::uint8_t> generation_from(const std::string& text, const std::string& where) {
  std::uint8_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size())
    return invalid(fmt::format("'{}' is no generation of keys", text), where);
  return out;
}

Result<PublicKeys> parse_keys(const std::string& curve, const std::string& sign, const std::string& where) {
  const auto curve_key = key_from_hex<32>(curve, where), sign_key = key_from_hex<32>(sign, where);
  if (!curve_key) return tl::unexpected(curve_key.error());
  if (!sign_key) return tl::unexpected(sign_key.error());
  return PublicKeys{*curve_key, *sign_key};
}

Result<Member> parse_member(const std::string& line, bool two, const std::string& where) {
  const auto parts = split(line, '\t');
  if (parts.size() != (two ? 7 : 5))
    return invalid(
        two ? "not a member: id, role, cluster, four keys" : "not a member: id, role, cluster, two keys",
        where);
  Member out;
  auto id = ProcessName::parse(parts[0]);
  const auto role = value_of<Role>(parts[1]);
  if (!id || !role) return invalid(fmt::format("'{}' '{}' is no id and role", parts[0], parts[1]), where);
  out.identity = {*id, *role, ClusterName(parts[2] == "-" ? "" : parts[2])};
  const auto keys = parse_keys(parts[3], parts[4], where);
  if (!keys) return tl::unexpected(keys.error());
  out.keys = *keys;
  if (!two) return out;
  const auto other = parse_keys(parts[5], parts[6], where);
  if (!other) return tl::unexpected(other.error());
  out.other = *other;
  return out;
}

/// The generations and the members; no secrets.
Result<Keyring> read_directory(const std::string& dir) {
  const std::string path = directory_path(dir);
  const auto text = read_whole(path);
  if (!text) return tl::unexpected(text.error());
  Keyring out;
  std::stringstream in(*text);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with(directory_head))
    return invalid("not a directory of keys of this version", path, "signalbox keys init makes one");
  const auto head = split(line.substr(directory_head.size()), '\t');
  const bool two = head.size() == 3 && head[1] == "other";
  if (head.size() != 1 && !two) return invalid("not a directory of keys of this version", path);
  const auto generation = generation_from(head[0], path);
  if (!generation) return tl::unexpected(generation.error());
  out.generation = *generation;
  if (two) {
    const auto other = generation_from(head[2], path);
    if (!other) return tl::unexpected(other.error());
    out.other_generation = *other;
  }
  std::vector<Member> members;
  for (int number = 2; std::getline(in, line); ++number) {
    auto member = parse_member(line, two, fmt::format("{}:{}", path, number));
    if (!member) return tl::unexpected(std::move(member.error()));
    members.push_back(std::move(*member));
  }
  out.directory = Directory(std::move(members));
  return out;
}

Result<std::vector<Secret>> read_secrets(const std::string& path) {
  const auto text = read_secret(path);
  if (!text) return tl::unexpected(text.error());
  const auto lines = split(*text, '\n');
  if (lines.size() < 3 || lines.size() % 2 == 0 || lines[0] != secret_head)
    return invalid("not a secret of this version", path);
  std::vector<Secret> out;
  for (std::size_t i = 1; i < lines.size(); i += 2) {
    const auto curve = key_from_hex<32>(lines[i], path);
    const auto sign = key_from_hex<64>(lines[i + 1], path);
    if (!curve) return tl::unexpected(curve.error());
    if (!sign) return tl::unexpected(sign.error());
    out.push_back({*curve, *sign});
  }
  return out;
}

/// By generation; a key without one is of `only`.
Result<std::map<std::uint8_t, Key32>> read_macs(const std::string& dir, std::uint8_t only) {
  const std::string path = mac_path(dir);
  const auto text = read_secret(path);
  if (!text) return tl::unexpected(text.error());
  std::map<std::uint8_t, Key32> out;
  for (const std::string& line : split(*text, '\n')) {
    const auto parts = split(line, '\t');
    const auto mac = key_from_hex<32>(parts.empty() ? "" : parts[0], path);
    if (!mac) return tl::unexpected(mac.error());
    const auto generation = parts.size() < 2 ? Result<std::uint8_t>(only) : generation_from(parts[1], path);
    if (!generation) return tl::unexpected(generation.error());
    out[*generation] = *mac;
  }
  return out;
}

const Secret* secret_for(const std::vector<Secret>& secrets, const PublicKeys& keys) {
  for (const Secret& secret : secrets)
    if (public_of(secret) == keys) return &secret;
  return nullptr;
}

tl::unexpected<Error> no_mac(const std::string& dir, std::uint8_t generation) {
  return fail(ErrorKind::conflict, fmt::format("no key of generation {}", generation), mac_path(dir),
              "take directory.tsv and fleet.mac from the same folder");
}

Rotation state_of(const Keyring& directory) {
  if (!directory.other_generation) return Rotation::steady;
  return *directory.other_generation > directory.generation ? Rotation::announced : Rotation::switched;
}

// --- rotating

/// Everybody gets new keys, beside those that he has. What an interrupted step left of new keys is replaced.
Status announce(const std::string& dir, Keyring& directory) {
  if (directory.generation == UINT8_MAX)
    return fail(ErrorKind::conflict, "there is no next generation", dir, "make new keys in another folder");
  const auto next = static_cast<std::uint8_t>(directory.generation + 1);
  auto macs = read_macs(dir, directory.generation);
  if (!macs) return tl::unexpected(macs.error());
  if (!macs->contains(directory.generation)) return no_mac(dir, directory.generation);
  std::vector<Identity> identities;
  for (const auto& [id, member] : directory.directory.members()) identities.push_back(member.identity);
  const auto fresh = make_keyrings(identities);
  std::vector<Member> members;
  for (const auto& [id, old] : directory.directory.members()) {
    const auto secrets = read_secrets(secret_path(dir, id));
    if (!secrets) return tl::unexpected(secrets.error());
    const Secret* current = secret_for(*secrets, old.keys);
    if (current == nullptr)
      return fail(ErrorKind::conflict, "this secret does not belong to the directory's public keys",
                  secret_path(dir, id), "rotate keys where they were made: all secrets are needed");
    const Keyring& keyring = fresh.at(id);
    const auto status = write_durably(
        secret_path(dir, id), secret_text({*current, Secret{keyring.curve_secret, keyring.sign_secret}}));
    if (!status) return status;
    members.push_back({old.identity, old.keys, keyring.directory.find(id)->keys});
  }
  *macs = {{directory.generation, macs->at(directory.generation)}, {next, fresh.begin()->second.fleet_mac}};
  if (const auto status = write_durably(mac_path(dir), mac_text(*macs)); !status) return status;
  directory.other_generation = next;
  directory.directory = Directory(std::move(members));
  return write_durably(directory_path(dir), directory_text(directory));
}

/// From now on everybody speaks with the new keys.
Status switch_over(const std::string& dir, Keyring& directory) {
  std::vector<Member> members;
  for (const auto& [id, old] : directory.directory.members())
    members.push_back({old.identity, *old.other, old.keys});
  std::swap(directory.generation, *directory.other_generation);
  directory.directory = Directory(std::move(members));
  return write_durably(directory_path(dir), directory_text(directory));
}

/// The old keys are worth nothing from now on.
Status finish(const std::string& dir, Keyring& directory) {
  std::vector<Member> members;
  for (const auto& [id, old] : directory.directory.members()) members.push_back({old.identity, old.keys, {}});
  directory.other_generation.reset();
  directory.directory = Directory(std::move(members));
  if (const auto status = write_durably(directory_path(dir), directory_text(directory)); !status)
    return status;
  for (const auto& [id, member] : directory.directory.members()) {
    const auto secrets = read_secrets(secret_path(dir, id));
    if (!secrets) return tl::unexpected(secrets.error());
    const Secret* current = secret_for(*secrets, member.keys);
    if (current == nullptr) continue;
    if (const auto status = write_durably(secret_path(dir, id), secret_text({*current})); !status)
      return status;
  }
  const auto macs = read_macs(dir, directory.generation);
  if (!macs) return tl::unexpected(macs.error());
  return write_durably(mac_path(dir), mac_text({{directory.generation, macs->at(directory.generation)}}));
}

}  // namespace

Status keys_init(const std::string& dir, const std::vector<Identity>& identities) {
  std::set<ProcessName> ids;
  for (const Identity& identity : identities)
    if (identity.id.empty() || !ids.insert(identity.id).second)
      return invalid(fmt::format("process '{}' is named twice or has no name", identity.id));
  if (auto status = make_private_folder(dir); !status) return status;
  if (auto status = check_private_folder(dir); !status) return status;
  struct stat info {};
  if (::stat(directory_path(dir).c_str(), &info) == 0)
    return fail(ErrorKind::conflict, "there are keys already", dir,
                "name another folder, or remove this one");

  const auto keyrings = make_keyrings(identities);
  if (keyrings.empty()) return invalid("no process needs keys", dir);
  Status status;
  for (const auto& [id, keyring] : keyrings)
    if (status)
      status = write_durably(secret_path(dir, id),
                             secret_text({Secret{keyring.curve_secret, keyring.sign_secret}}));
  const Keyring& any = keyrings.begin()->second;
  if (status) status = write_durably(mac_path(dir), mac_text({{any.generation, any.fleet_mac}}));
  // The directory last: it is what says that the folder is complete.
  if (status) status = write_durably(directory_path(dir), directory_text(any));
  return status;
}

Result<Rotated> rotation_of(const std::string& dir) {
  const auto directory = read_directory(dir);
  if (!directory) return tl::unexpected(directory.error());
  return Rotated{state_of(*directory), directory->generation};
}

Result<Rotated> keys_rotate(const std::string& dir) {
  auto directory = read_directory(dir);
  if (!directory) return tl::unexpected(directory.error());
  if (const auto status = check_private_folder(dir); !status) return tl::unexpected(status.error());
  const Rotation before = state_of(*directory);
  const Status status = before == Rotation::steady      ? announce(dir, *directory)
                        : before == Rotation::announced ? switch_over(dir, *directory)
                                                        : finish(dir, *directory);
  if (!status) return tl::unexpected(status.error());
  return Rotated{state_of(*directory), directory->generation};
}

Result<Keyring> load_keyring(const std::string& dir, const ProcessName& id) {
  auto out = read_directory(dir);
  if (!out) {
    if (out.error().kind == ErrorKind::not_found)
      out.error().hint = "signalbox keys init makes the keys of a fleet";
    return out;
  }
  const Member* self = out->directory.find(id);
  if (self == nullptr)
    return fail(
        ErrorKind::not_found, fmt::format("no keys for process '{}'", id), directory_path(dir),
        "signalbox keys init makes keys of every process of a configuration, in a folder that has none yet");

  auto secrets = read_secrets(secret_path(dir, id));
  if (!secrets) {
    if (secrets.error().kind == ErrorKind::not_found)
      secrets.error().hint =
          "bring it from where the keys were made, or make all of them anew with signalbox keys init";
    return tl::unexpected(std::move(secrets.error()));
  }
  const Secret* secret = secret_for(*secrets, self->keys);
  if (secret == nullptr)
    return fail(ErrorKind::conflict, "this secret does not belong to the directory's public keys",
                secret_path(dir, id),
                "take directory.tsv and the secret from the same signalbox keys init or rotate");
  const auto macs = read_macs(dir, out->generation);
  if (!macs) return tl::unexpected(macs.error());
  if (!macs->contains(out->generation)) return no_mac(dir, out->generation);
  if (out->other_generation) {
    if (!macs->contains(*out->other_generation)) return no_mac(dir, *out->other_generation);
    out->other_mac = macs->at(*out->other_generation);
  }
  out->identity = self->identity, out->curve_public = self->keys.curve;
  out->curve_secret = secret->curve, out->sign_secret = secret->sign;
  out->fleet_mac = macs->at(out->generation);
  return out;
}

}  // namespace signalbox::bus
