// What /metrics tells of requests, by model and kind of request. One event loop's; copied out to be shown.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cluster_router/http/request_shape.hpp"
#include "messages/base/time.hpp"

namespace signalbox::gateway {

/// Counts of values up to each bound, as Prometheus' histograms have them (there summed up).
class Histogram {
 public:
  static constexpr std::size_t max_bounds = 16;
  /// `bounds` ascend and outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}

  void add(double value);
  std::span<const double> bounds() const { return bounds_; }
  /// Of values over bounds()[i - 1] up to bounds()[i]; the last one of those over all bounds.
  std::uint64_t count(std::size_t i) const { return counts_[i]; }
  double sum() const { return sum_; }
  /// Of the same bounds.
  Histogram& operator+=(const Histogram& other);

 private:
  std::span<const double> bounds_;
  std::array<std::uint64_t, max_bounds + 1> counts_{};
  double sum_ = 0;
};

/// The bounds that OpenTelemetry's conventions for generative AI advise.
inline constexpr std::array duration_bounds{0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                            1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
inline constexpr std::array first_token_bounds{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                               0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0};
inline constexpr std::array per_token_bounds{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                             0.3,  0.4,   0.5,  0.75,  1.0, 2.5};
inline constexpr std::array token_bounds{1.0,       4.0,       16.0,       64.0,      256.0,
                                         1024.0,    4096.0,    16384.0,    65536.0,   262144.0,
                                         1048576.0, 4194304.0, 16777216.0, 67108864.0};

/// How a request ended.
enum class Ending : std::uint8_t { good, refused, engine_error, broken, client_left };
inline constexpr std::size_t endings = 5;
/// As error_type has it; empty for a good one.
std::string_view error_type(Ending ending);

/// The requests of one model and kind.
struct Meter {
  std::string model;  ///< empty: one that no catalogue declares
  http::Endpoint endpoint = http::Endpoint::other;
  std::uint64_t requests = 0;
  std::uint64_t running = 0;
  std::array<std::uint64_t, endings> ended{};
  Histogram duration_s{duration_bounds};        ///< of those that ended well
  Histogram first_token_s{first_token_bounds};  ///< streams, from the request's arrival
  Histogram per_token_s{per_token_bounds};      ///< streams, after the first token
  Histogram input_tokens{token_bounds};         ///< where the engine told
  Histogram output_tokens{token_bounds};

  /// Of the same model and kind on another loop.
  Meter& operator+=(const Meter& other);
};
/// One row for each model and kind, whatever loop it is of.
std::vector<Meter> summed(std::vector<Meter> meters);

class Meters {
 public:
  /// Stays where it is. `model` is one of a catalogue's, or empty: clients must not make up series.
  Meter& of(std::string_view model, http::Endpoint endpoint);
  std::vector<Meter> all() const;

 private:
  struct Key {
    std::string_view model;
    http::Endpoint endpoint;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::unique_ptr<Meter>> meters_;  ///< a key's text is its meter's
};

}  // namespace signalbox::gateway
