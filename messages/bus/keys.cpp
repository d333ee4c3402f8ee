#include "messages/bus/keys.hpp"

#include <sodium.h>
#include <sys/stat.h>

#include <charconv>
#include <set>
#include <sstream>

#include "messages/base/digest.hpp"
#include "messages/bus/files.hpp"

namespace signalbox::bus {

Directory::Directory(std::vector<Member> members) {
  for (Member& member : members) {
    by_curve_[member.curve_public] = member.identity.id;
    const ProcessName id = member.identity.id;
    members_[id] = std::move(member);
  }
}

const Member* Directory::find(const ProcessName& id) const {
  const auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}

const Member* Directory::find_curve(const Key32& key) const {
  const auto it = by_curve_.find(key);
  return it == by_curve_.end() ? nullptr : find(it->second);
}

std::map<ProcessName, Keyring> make_keyrings(const std::vector<Identity>& identities) {
  Key32 fleet_mac;
  randombytes_buf(fleet_mac.data(), fleet_mac.size());
  std::map<ProcessName, Keyring> out;
  std::vector<Member> members;
  for (const Identity& identity : identities) {
    Keyring& keyring = out[identity.id];
    keyring.identity = identity, keyring.fleet_mac = fleet_mac;
    Member member{identity, {}, {}};
    crypto_box_keypair(member.curve_public.data(), keyring.curve_secret.data());
    crypto_sign_keypair(member.sign_public.data(), keyring.sign_secret.data());
    keyring.curve_public = member.curve_public;
    members.push_back(std::move(member));
  }
  const Directory directory(std::move(members));
  for (auto& [id, keyring] : out) keyring.directory = directory;
  return out;
}

namespace {

constexpr std::string_view directory_head = "signalbox-directory\t1\tgeneration\t";
constexpr std::string_view secret_head = "signalbox-secret\t1";

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

std::string directory_text(const Keyring& keyring) {
  std::string out = fmt::format("{}{}\n", directory_head, keyring.generation);
  for (const auto& [id, member] : keyring.directory.members()) {
    const Identity& identity = member.identity;
    out += fmt::format("{}\t{}\t{}\t{}\t{}\n", id, name_of(identity.role),
                       identity.cluster.empty() ? "-" : identity.cluster.str(), to_hex(member.curve_public),
                       to_hex(member.sign_public));
  }
  return out;
}

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> out;
  std::stringstream in(line);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

Result<Member> parse_member(const std::string& line, const std::string& where) {
  const auto parts = split(line, '\t');
  if (parts.size() != 5) return invalid("not a member: id, role, cluster, two keys", where);
  Member out;
  auto id = ProcessName::parse(parts[0]);
  const auto role = value_of<Role>(parts[1]);
  if (!id || !role) return invalid(fmt::format("'{}' '{}' is no id and role", parts[0], parts[1]), where);
  out.identity = {*id, *role, ClusterName(parts[2] == "-" ? "" : parts[2])};
  auto curve = key_from_hex<32>(parts[3], where);
  auto sign = key_from_hex<32>(parts[4], where);
  if (!curve) return tl::unexpected(curve.error());
  if (!sign) return tl::unexpected(sign.error());
  out.curve_public = *curve, out.sign_public = *sign;
  return out;
}

Status parse_directory(const std::string& text, const std::string& path, Keyring& out) {
  std::stringstream in(text);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with(directory_head))
    return invalid("not a directory of keys of this version", path, "signalbox keys init makes one");
  std::from_chars(line.data() + directory_head.size(), line.data() + line.size(), out.generation);
  std::vector<Member> members;
  for (int number = 2; std::getline(in, line); ++number) {
    auto member = parse_member(line, fmt::format("{}:{}", path, number));
    if (!member) return tl::unexpected(std::move(member.error()));
    members.push_back(std::move(*member));
  }
  out.directory = Directory(std::move(members));
  return {};
}

Status parse_secret(const std::string& text, const std::string& path, Keyring& out) {
  const auto lines = split(text, '\n');
  if (lines.size() != 3 || lines[0] != secret_head) return invalid("not a secret of this version", path);
  auto curve = key_from_hex<32>(lines[1], path);
  auto sign = key_from_hex<64>(lines[2], path);
  if (!curve) return tl::unexpected(curve.error());
  if (!sign) return tl::unexpected(sign.error());
  out.curve_secret = *curve, out.sign_secret = *sign;
  return {};
}

/// The secrets on disk belong to the public keys that the others know.
Status check_pairs(const Keyring& keyring, const Member& member, const std::string& path) {
  Key32 curve_public;
  Key32 sign_public;
  crypto_scalarmult_base(curve_public.data(), keyring.curve_secret.data());
  crypto_sign_ed25519_sk_to_pk(sign_public.data(), keyring.sign_secret.data());
  if (curve_public != member.curve_public || sign_public != member.sign_public)
    return fail(ErrorKind::conflict, "this secret does not belong to the directory's public keys", path,
                "take directory.tsv and the secret from the same signalbox keys init");
  return {};
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
  const std::string directory_path = dir + "/directory.tsv";
  if (::stat(directory_path.c_str(), &info) == 0)
    return fail(ErrorKind::conflict, "there are keys already", dir,
                "name another folder, or remove this one");

  const auto keyrings = make_keyrings(identities);
  if (keyrings.empty()) return invalid("no process needs keys", dir);
  Status status;
  for (const auto& [id, keyring] : keyrings)
    if (status)
      status = write_durably(fmt::format("{}/{}.secret", dir, id),
                             fmt::format("{}\n{}\n{}\n", secret_head, to_hex(keyring.curve_secret),
                                         to_hex(keyring.sign_secret)));
  const Keyring& any = keyrings.begin()->second;
  if (status) status = write_durably(dir + "/fleet.mac", to_hex(any.fleet_mac) + "\n");
  // The directory last: it is what says that the folder is complete.
  if (status) status = write_durably(directory_path, directory_text(any));
  return status;
}

Result<Keyring> load_keyring(const std::string& dir, const ProcessName& id) {
  Keyring out;
  const std::string directory_path = dir + "/directory.tsv";
  auto directory = read_whole(directory_path);
  if (!directory) {
    if (directory.error().kind == ErrorKind::not_found)
      directory.error().hint = "signalbox keys init makes the keys of a fleet";
    return tl::unexpected(directory.error());
  }
  if (auto status = parse_directory(*directory, directory_path, out); !status)
    return tl::unexpected(std::move(status.error()));
  const Member* self = out.directory.find(id);
  if (self == nullptr)
    return fail(
        ErrorKind::not_found, fmt::format("no keys for process '{}'", id), directory_path,
        "signalbox keys init makes keys of every process of a configuration, in a folder that has none yet");

  const std::string secret_path = fmt::format("{}/{}.secret", dir, id);
  const std::string mac_path = dir + "/fleet.mac";
  auto secret = read_secret(secret_path);
  if (!secret) {
    if (secret.error().kind == ErrorKind::not_found)
      secret.error().hint =
          "bring it from where the keys were made, or make all of them anew with signalbox keys init";
    return tl::unexpected(std::move(secret.error()));
  }
  auto mac = read_secret(mac_path);
  if (!mac) return tl::unexpected(std::move(mac.error()));
  if (auto status = parse_secret(*secret, secret_path, out); !status)
    return tl::unexpected(std::move(status.error()));
  if (auto status = check_pairs(out, *self, secret_path); !status)
    return tl::unexpected(std::move(status.error()));
  auto fleet_mac = key_from_hex<32>(mac->substr(0, mac->find('\n')), mac_path);
  if (!fleet_mac) return tl::unexpected(std::move(fleet_mac.error()));
  out.identity = self->identity, out.curve_public = self->curve_public, out.fleet_mac = *fleet_mac;
  return out;
}

}  // namespace signalbox::bus
