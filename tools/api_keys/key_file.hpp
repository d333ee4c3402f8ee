// A file of API keys as a command changes it: what people wrote beside the keys stays.
#pragma once

#include <optional>
#include <string>

#include "cluster-config/schema/api_keys.hpp"

namespace signalbox::api_keys {

class KeyFile {
 public:
  /// `create`: a file that is not there is begun, with a new salt. Errors: io, not_found, invalid (it has mistakes).
  static Result<KeyFile> open(const std::string& path, bool create);

  const config::ApiKeys& keys() const { return keys_; }
  /// Adds this key, hashed. Errors: conflict (a name or key that is there), io.
  Status add(config::ApiKey entry, std::string_view key);
  /// Errors: not_found, io.
  Status remove(const std::string& name);

 private:
  /// Replaces the file at once, readable by its owner alone unless it was more widely readable before.
  Status write(const std::string& text);

  std::string path_, text_;
  config::ApiKeys keys_;
};

/// A key of 256 random bits.
std::string new_key();

}  // namespace signalbox::api_keys
