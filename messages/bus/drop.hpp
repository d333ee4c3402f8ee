// Why something that arrived was not delivered.
#pragma once

#include <cstdint>

#include "messages/base/described.hpp"

namespace signalbox::bus {

enum class Drop : std::uint8_t {
  malformed,
  too_large,
  unknown_kind,
  unknown_sender,
  not_author,
  bad_proof,
  bad_body,
  wrong_topic,
  duplicate,
  overtaken,
  superseded,
  stale,
  crowded,
};

}  // namespace signalbox::bus

template <>
struct signalbox::EnumTable<signalbox::bus::Drop> {
  static constexpr std::array rows{
      EnumRow{"malformed", "its frames or its envelope cannot be read"},
      EnumRow{"too_large", "it is longer than its kind may be"},
      EnumRow{"unknown_kind", "no message of this kind is declared here"},
      EnumRow{"unknown_sender", "the directory does not know its sender"},
      EnumRow{"not_author", "its sender may not say this, or not on this topic"},
      EnumRow{"bad_proof", "its signature or MAC is missing or wrong"},
      EnumRow{"bad_body", "its body cannot be read or is out of bounds"},
      EnumRow{"wrong_topic", "its topic is not the one that its body belongs to"},
      EnumRow{"duplicate", "it was received before, as a rule by another forwarder"},
      EnumRow{"overtaken", "a later value of its topic was already delivered"},
      EnumRow{"superseded", "a later incarnation of its sender has spoken"},
      EnumRow{"stale", "it is older than its kind may be"},
      EnumRow{"crowded", "its sender speaks on more topics than are kept track of"},
  };
};
