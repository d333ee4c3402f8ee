// Messages within their declared bounds, drawn from the declarations.
#pragma once

#include <algorithm>
#include <string>

#include "messages/base/rng.hpp"
#include "messages/schema/catalog.hpp"

namespace signalbox::tests {

class RandomMessage {
 public:
  /// Vectors get up to `most_items` elements.
  RandomMessage(Rng& rng, std::size_t most_items) : rng_(rng), most_items_(most_items) {}

  template <schema::Described T>
  T make() {
    T out;
    schema::for_each_field<T>([&](const auto& f) { fill(f, out.*f.place); });
    return out;
  }

  /// The kind at that position of the catalog.
  schema::Message make_at(std::size_t index) {
    return make_at(index, std::make_index_sequence<schema::message_count>());
  }

 private:
  template <std::size_t... I>
  schema::Message make_at(std::size_t index, std::index_sequence<I...>) {
    schema::Message out;
    ((I == index ? void(out = make<schema::MessageType<I>>()) : void()), ...);
    return out;
  }

  std::string text(std::size_t most) {
    std::string out(rng_.below(std::min<std::size_t>(most, 24) + 1), 'a');
    for (char& c : out) c = static_cast<char>('a' + rng_.below(26));
    return out;
  }

  template <class F>
  double number(const F& f) {
    const double low = std::max(f.least, -1e9);
    const double high = std::min(f.most, 1e9);
    return rng_.chance(0.1) ? low : rng_.uniform(low, high);
  }

  template <class F, class V>
  void fill(const F& f, V& out) {
    if constexpr (schema::is_optional<V>::value) {
      if (rng_.chance(0.7)) fill(f, out.emplace());
    } else if constexpr (std::is_same_v<V, std::string>) {
      out = text(f.most_items);
    } else if constexpr (schema::is_name<V>::value) {
      out = V("n" + text(20));
    } else if constexpr (std::is_same_v<V, Digest>) {
      for (auto& byte : out.bytes) byte = static_cast<std::uint8_t>(rng_.next());
    } else if constexpr (std::is_same_v<V, Incarnation>) {
      out = {rng_.below(1000), rng_.next()};
    } else if constexpr (std::is_same_v<V, Term>) {
      out = {rng_.below(1000), ProcessName("o" + text(3))};
    } else if constexpr (std::is_same_v<V, SnapshotVersion>) {
      fill(f, out.term), out.sequence = rng_.below(1u << 20);
    } else if constexpr (schema::is_vector<V>::value) {
      out.resize(rng_.below(std::min<std::size_t>(f.most_items, most_items_) + 1));
      for (auto& item : out) fill(f, item);
    } else if constexpr (schema::Described<V>) {
      out = make<V>();
    } else {
      fill_scalar(f, out);
    }
  }

  template <class F, class V>
  void fill_scalar(const F& f, V& out) {
    if constexpr (std::is_same_v<V, bool>)
      out = rng_.chance(0.5);
    else if constexpr (std::is_same_v<V, double>)
      out = number(f);
    else if constexpr (std::is_same_v<V, Duration>)
      out = from_seconds(number(f));
    else if constexpr (DescribedEnum<V>)
      out = static_cast<V>(rng_.below(enum_size<V>));
    else if constexpr (schema::is_index<V>::value)
      out = rng_.chance(0.1) ? V() : V(rng_.below(1000));
    else
      out = static_cast<V>(f.most < 1e9 ? rng_.below(static_cast<std::uint64_t>(f.most) + 1)
                                        : rng_.next() >> rng_.below(64));
  }

  Rng& rng_;
  std::size_t most_items_;
};

}  // namespace signalbox::tests
