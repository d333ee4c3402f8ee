// What a policy file says, before anything is looked up or compared.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster-config/policy/knobs.hpp"
#include "cluster-config/policy/lexer.hpp"

namespace signalbox::policy {

/// What a limit of churn always excepts.
inline constexpr std::string_view churn_exception = "except from engine gone | draining";

struct Word {
  std::string text;
  Span span;
};

/// A number as written; its dimension is judged by who wants it.
struct Quantity {
  std::string digits;
  std::string unit;
  Span span;
};

struct KnobUse {
  const Knob* knob;
  Quantity value;
};

struct ModelDecl {
  Word name;
  std::optional<Quantity> low, high;
};
struct ZoneDecl {
  Word name;
  std::vector<Word> regions;
};

struct CriticalityValue {
  Word criticality;
  Quantity value;
};
struct WeightUse {
  Word term;  ///< ttft, tpot, egress, churn
  Quantity weight;
  std::optional<std::pair<Quantity, Quantity>> bounds;
};

struct ClassDecl {
  Word name;
  bool broken = false;  ///< a part of it was not understood, and that was reported
  std::vector<Word> tenants;
  std::optional<Word> model;
  std::string version_op;  ///< "", "=", ">=", "<=", ".."
  std::optional<Quantity> version, version_high;
  std::optional<Word> criticality;
  std::vector<Word> asked;
  std::optional<std::pair<Quantity, Quantity>> tokens;
  std::optional<Word> residency;  ///< "any" or "zone"
  std::vector<Word> zones;
  bool strict = false;
  std::optional<std::pair<Quantity, Quantity>> demand;
  std::optional<Quantity> shed_cost, floor;
  std::optional<Quantity> ttft_weight, tpot_weight;
  bool continue_streams = false;
};

enum class LimitKind : std::uint8_t {
  engine_weight,
  rack_weight,
  cluster_weight,
  region_weight,
  zone_weight,
  load,
  in_flight
};
struct LimitUse {
  LimitKind kind;
  Quantity value;
};
/// spread CLASS >= N engines, M racks
struct SpreadUse {
  Word service_class;
  std::optional<Quantity> engines, racks;
};
/// survive N LEVEL for criticality >= FROM
struct SurviveUse {
  Quantity count;
  Word level, from;
};

/// churn L1 <= SHARE per snapshot, SHARE per WINDOW
struct ChurnUse {
  std::optional<Quantity> per_snapshot, in_window, window;
};
/// capacity(CLASS, LEVEL PLACE) >= FACTOR * demand
struct ReserveUse {
  Word service_class;
  std::optional<Word> level, place;
  Quantity factor;
};

struct ShedDecl {
  std::vector<Word> order;
  std::vector<CriticalityValue> costs, floors;
  std::vector<std::pair<Word, Word>> never_before;  ///< first: the one that is refused later
};

struct NeverTerm {
  Word field;
  bool equal;
  Word value;
};
struct NeverDecl {
  Span span;
  std::vector<NeverTerm> terms;
};

struct TestDecl {
  Span span;
  std::optional<Word> tenant, model, asked;
  std::optional<Quantity> version, tokens;
  std::optional<Word> expected_class;
  std::optional<Quantity> expected_status;
  std::vector<Word> within;
};

/// Where the layout breaks lines.
enum class MarkKind : std::uint8_t {
  statement,
  item,  ///< of a block
  part,  ///< of a statement, where a long line may be broken
};
struct Mark {
  std::size_t token;  ///< the first one of it
  MarkKind kind;
};

struct Document {
  std::optional<Word> name, owner, review_by;
  std::optional<Quantity> version;
  std::vector<ZoneDecl> zones;
  std::vector<ModelDecl> models;
  std::vector<ClassDecl> classes;
  bool otherwise_said = false;
  std::optional<Quantity> otherwise;
  Span end;  ///< where a missing statement is reported
  std::vector<LimitUse> limits;
  std::vector<SpreadUse> spreads;
  std::vector<SurviveUse> survivals;
  std::optional<ChurnUse> churn;
  std::vector<ReserveUse> reserves;
  std::optional<ShedDecl> shed;
  std::vector<KnobUse> knobs;
  std::vector<Word> retry_on;  ///< kinds of failure and statuses
  std::optional<std::vector<Quantity>> retry_not_on;
  bool retry_on_given = false;
  std::vector<WeightUse> objective;
  std::vector<NeverDecl> nevers;
  std::vector<TestDecl> tests;
  std::vector<Mark> marks;
};

}  // namespace signalbox::policy
