// Who may say what, and by which keys it is known. `signalbox keys init` makes one folder:
//
//   directory.tsv   public: identity -> role, cluster, CURVE and Ed25519 public keys
//   fleet.mac       secret of all members: the key of the MAC on frequent facts
//   <id>.secret     secret of one process
//
// Every process needs directory.tsv, fleet.mac and its own secret; no process needs another's.
//
// Keys have a generation. While they are rotated there are two: everybody speaks with the current one and believes both.
//
//   steady: G  --announce-->  G, and G+1 is believed  --switch-->  G+1, and G is believed  --finish-->  steady: G+1
//
// Each step must be known to every process before the next is taken: then nobody ever hears keys that he does not know.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "messages/base/ids.hpp"
#include "messages/base/result.hpp"
#include "messages/base/words.hpp"

namespace signalbox::bus {

using Key32 = std::array<std::uint8_t, 32>;
using Key64 = std::array<std::uint8_t, 64>;

/// A process as the bus knows it. `cluster` is empty for those that serve no one cluster; where it is set the
/// process may speak for that cluster only.
struct Identity {
  ProcessName id;
  Role role = Role::tool;
  ClusterName cluster;
  friend auto operator<=>(const Identity&, const Identity&) = default;
};

struct PublicKeys {
  Key32 curve{};
  Key32 sign{};
  friend bool operator==(const PublicKeys&, const PublicKeys&) = default;
};

/// What everybody may know of one process.
struct Member {
  Identity identity;
  PublicKeys keys;
  std::optional<PublicKeys> other;  ///< of the other generation, while keys are rotated
};

/// All members, by id and by CURVE key.
class Directory {
 public:
  Directory() = default;
  explicit Directory(std::vector<Member> members);

  /// nullptr if nobody has it.
  const Member* find(const ProcessName& id) const;
  const Member* find_curve(const Key32& key) const;
  const std::map<ProcessName, Member>& members() const { return members_; }

 private:
  std::map<ProcessName, Member> members_;
  std::map<Key32, ProcessName> by_curve_;
};

/// What one process holds.
struct Keyring {
  Identity identity;
  Key32 curve_public{};
  Key32 curve_secret{};
  Key64 sign_secret{};
  Key32 fleet_mac{};
  std::uint8_t generation = 1;  ///< of the keys; carried in every proof
  /// While keys are rotated: the other generation that is believed, and its MAC key.
  std::optional<std::uint8_t> other_generation;
  Key32 other_mac{};
  Directory directory;
};

/// Makes keys for these processes in a new folder (0700, files 0600). conflict if it holds keys already.
Status keys_init(const std::string& dir, const std::vector<Identity>& identities);

/// What a folder of keys is in the middle of.
enum class Rotation : std::uint8_t { steady, announced, switched };

struct Rotated {
  Rotation state = Rotation::steady;  ///< after the step
  std::uint8_t generation = 1;        ///< that everybody speaks with then
  friend bool operator==(const Rotated&, const Rotated&) = default;
};

/// Takes the next step of a rotation. Each file is replaced as a whole and the directory decides which keys of the others
/// count, so that a step that was interrupted can be taken again.
Result<Rotated> keys_rotate(const std::string& dir);
Result<Rotated> rotation_of(const std::string& dir);

/// Reads what process `id` needs. denied if a secret can be read by others, not_found if `id` is no member.
Result<Keyring> load_keyring(const std::string& dir, const ProcessName& id);

/// Keys of these processes without a folder, for tests and for tools that keep them elsewhere.
std::map<ProcessName, Keyring> make_keyrings(const std::vector<Identity>& identities);

}  // namespace signalbox::bus
