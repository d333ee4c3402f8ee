#include "messages/bus/keys.hpp"

#include <sodium.h>

namespace signalbox::bus {

Directory::Directory(std::vector<Member> members) {
  for (Member& member : members) {
    by_curve_[member.keys.curve] = member.identity.id;
    if (member.other) by_curve_[member.other->curve] = member.identity.id;
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
    crypto_box_keypair(member.keys.curve.data(), keyring.curve_secret.data());
    crypto_sign_keypair(member.keys.sign.data(), keyring.sign_secret.data());
    keyring.curve_public = member.keys.curve;
    members.push_back(std::move(member));
  }
  const Directory directory(std::move(members));
  for (auto& [id, keyring] : out) keyring.directory = directory;
  return out;
}

}  // namespace signalbox::bus
