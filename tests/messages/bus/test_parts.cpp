#include <sys/stat.h>

#include <fstream>

#include "messages/bus/authority.hpp"
#include "messages/bus/backlog.hpp"
#include "messages/bus/endpoint.hpp"
#include "messages/bus/incarnation.hpp"
#include "messages/bus/last_values.hpp"
#include "messages/bus/proof.hpp"
#include "tests/messages/bus/support.hpp"

using namespace signalbox;
using namespace signalbox::bus;
using namespace signalbox::tests;

namespace {
int mode_of(const std::string& path) {
  struct stat info {};
  ::stat(path.c_str(), &info);
  return static_cast<int>(info.st_mode & 0777);
}
}  // namespace

BOOST_AUTO_TEST_CASE(keys_are_private_belong_together_and_are_not_overwritten) {
  const Folder folder;
  const std::string dir = folder / "keys";
  BOOST_TEST_REQUIRE(error_of(keys_init(dir, {proxy, router, bus_a})) == "");
  BOOST_TEST(mode_of(dir) == 0700);
  for (const char* file : {"directory.tsv", "fleet.mac", "proxy-east.secret", "router-east.secret"})
    BOOST_TEST(mode_of(dir + "/" + file) == 0600, file);

  const auto proxy_keys = load_keyring(dir, proxy.id);
  const auto router_keys = load_keyring(dir, router.id);
  BOOST_TEST_REQUIRE(error_of(proxy_keys) == "");
  BOOST_TEST_REQUIRE(error_of(router_keys) == "");
  BOOST_TEST((proxy_keys->identity == proxy));
  BOOST_TEST((proxy_keys->fleet_mac == router_keys->fleet_mac));
  BOOST_TEST(proxy_keys->directory.members().size() == 3u);
  BOOST_TEST(router_keys->directory.find_curve(proxy_keys->curve_public)->identity.id.str() == "proxy-east");

  BOOST_TEST(keys_init(dir, {proxy}).error().text() ==
             dir + ": there are keys already; name another folder, or remove this one");
  BOOST_TEST((load_keyring(dir, monitor.id).error().kind == ErrorKind::not_found));
  BOOST_TEST((load_keyring(folder / "none", proxy.id).error().kind == ErrorKind::not_found));
}

BOOST_AUTO_TEST_CASE(secrets_that_others_can_read_or_that_do_not_belong_are_refused) {
  const Folder folder;
  const std::string dir = folder / "keys";
  BOOST_TEST_REQUIRE(error_of(keys_init(dir, {proxy, router})) == "");
  ::chmod((dir + "/proxy-east.secret").c_str(), 0644);
  BOOST_TEST((load_keyring(dir, proxy.id).error().kind == ErrorKind::denied));
  ::chmod((dir + "/proxy-east.secret").c_str(), 0600);
  std::filesystem::copy_file(dir + "/router-east.secret", dir + "/proxy-east.secret",
                             std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST((load_keyring(dir, proxy.id).error().kind == ErrorKind::conflict));
  BOOST_TEST(!keys_init(folder / "twice", {proxy, proxy}).has_value());
  BOOST_TEST(!keys_init(folder / "none", {}).has_value());
}

BOOST_AUTO_TEST_CASE(keys_are_rotated_in_three_steps_and_neighbours_believe_each_other) {
  const Folder folder;
  const std::string dir = folder / "keys";
  BOOST_TEST_REQUIRE(error_of(keys_init(dir, {proxy, monitor, router, bus_a})) == "");
  struct Life {
    Keyring proxy, monitor, router;
  };
  const auto start = [&] {
    return Life{*load_keyring(dir, proxy.id), *load_keyring(dir, monitor.id), *load_keyring(dir, router.id)};
  };
  std::vector<Life> lives{start()};
  const Rotation expected[] = {Rotation::announced, Rotation::switched, Rotation::steady};
  for (const Rotation state : expected) {
    const auto step = keys_rotate(dir);
    BOOST_TEST_REQUIRE(error_of(step) == "");
    BOOST_TEST((step->state == state));
    BOOST_TEST((rotation_of(dir)->state == state));
    lives.push_back(start());
  }
  BOOST_TEST(lives[0].proxy.generation == 1);
  BOOST_TEST(lives[3].proxy.generation == 2);
  BOOST_TEST((lives[0].proxy.curve_public != lives[3].proxy.curve_public));

  const schema::Bytes bytes{1, 2, 3};
  const auto believes = [&](const Life& to, const Life& from, schema::Protection protection) {
    const Keyring& author = protection == schema::Protection::mac ? from.proxy : from.monitor;
    const Signed content{"topic/", bytes, bytes};
    return check_proof(to.router, protection, *to.router.directory.find(author.identity.id), content,
                       make_proof(author, protection, content));
  };
  for (std::size_t from = 0; from < lives.size(); ++from)
    for (std::size_t to = 0; to < lives.size(); ++to)
      for (const auto protection : {schema::Protection::mac, schema::Protection::signature}) {
        // Lives 0 and 1 speak with the old keys, 2 and 3 with the new ones; 1 and 2 know both.
        const bool knows = to == 1 || to == 2 || (to == 0 ? from <= 1 : from >= 2);
        BOOST_TEST(believes(lives[to], lives[from], protection) == knows,
                   "life " << from << " speaks to life " << to);
        BOOST_TEST((lives[to].router.directory.find_curve(lives[from].proxy.curve_public) != nullptr) ==
                   knows);
      }
}

BOOST_AUTO_TEST_CASE(a_rotation_that_was_interrupted_can_be_taken_up_again) {
  const Folder folder;
  const std::string dir = folder / "keys";
  BOOST_TEST_REQUIRE(error_of(keys_init(dir, {proxy, router})) == "");
  const std::string before = folder / "before";
  std::filesystem::copy(dir, before);
  BOOST_TEST_REQUIRE(error_of(keys_rotate(dir)) == "");
  // The directory is written last: without it the step has not happened.
  std::filesystem::copy_file(before + "/directory.tsv", dir + "/directory.tsv",
                             std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST(error_of(load_keyring(dir, proxy.id)) == "");
  for (int step = 0; step < 3; ++step) {
    BOOST_TEST_REQUIRE(error_of(keys_rotate(dir)) == "");
    BOOST_TEST(error_of(load_keyring(dir, proxy.id)) == "");
  }
  std::filesystem::remove(dir + "/router-east.secret");
  BOOST_TEST((keys_rotate(dir).error().kind == ErrorKind::not_found));
  BOOST_TEST(error_of(load_keyring(dir, proxy.id)) == "");
}

BOOST_AUTO_TEST_CASE(without_keys_the_bus_stays_on_this_host) {
  const Folder folder;
  const Folder open;
  ::chmod((open / "").c_str(), 0755);
  struct Row {
    std::string endpoint;
    bool with_keys, without_keys;
  };
  const Row table[] = {
      {"tcp://127.0.0.1:5000", true, true},
      {"tcp://localhost:5000", true, true},
      {"tcp://[::1]:5000", true, true},
      {"tcp://10.0.0.1:5000", true, false},
      {"tcp://*:5000", true, false},
      {"tcp://0.0.0.0:5000", true, false},
      {"tcp://127.0.0.1", false, false},
      {"udp://127.0.0.1:5000", false, false},
      {"ipc://" + (folder / "bus"), true, true},
      {"ipc://" + (open / "bus"), true, false},
      {"ipc://relative", false, false},
      {"", false, false},
  };
  for (const Row& row : table) {
    BOOST_TEST(check_endpoint(row.endpoint, true).has_value() == row.with_keys, row.endpoint);
    BOOST_TEST(check_endpoint(row.endpoint, false).has_value() == row.without_keys, row.endpoint);
  }
}

BOOST_AUTO_TEST_CASE(every_kind_has_authors_who_may_speak_on_its_topics_only) {
  for (const schema::MessageInfo& info : schema::catalog()) {
    Identity identity{ProcessName("me"), Role::tool, ClusterName("east")};
    while (!info.authors.has(identity.role))
      identity.role = static_cast<Role>(static_cast<int>(identity.role) + 1);
    std::string good;
    for (std::string_view rest = info.topic; !rest.empty();) {
      const auto part = rest.substr(0, rest.find('/'));
      rest.remove_prefix(part.size() + 1);
      if (part == "<role>")
        good += name_of(identity.role);
      else if (part == "<cluster>")
        good += "east";
      else
        good += part.starts_with('<') ? "me" : part;
      good += '/';
    }
    BOOST_TEST(error_of(check_author(info, good, identity.id, &identity)) == "");
    for (const std::string& bad : std::vector<std::string>{"", "/", "x/", good.substr(1), good + "x/"})
      BOOST_TEST(!check_author(info, bad, identity.id, &identity).has_value(), info.name << " on " << bad);
    std::string wild = good;
    wild.replace(wild.rfind("me/"), 2, "a b");
    BOOST_TEST(!check_author(info, wild, identity.id, &identity).has_value(), wild);
  }
}

BOOST_AUTO_TEST_CASE(each_start_is_a_later_life) {
  const Folder folder;
  const auto first = next_incarnation(folder / "", proxy.id);
  const auto second = next_incarnation(folder / "", proxy.id);
  BOOST_TEST_REQUIRE(error_of(first) == "");
  BOOST_TEST(error_of(first->kept) == "");
  BOOST_TEST(second->incarnation.counter == first->incarnation.counter + 1);
  BOOST_TEST(second->incarnation.random != first->incarnation.random);
  BOOST_TEST(first->incarnation.counter > 1'700'000'000u);  // a lost file does not fall behind
  std::ofstream(folder / "proxy-east.incarnation") << "nonsense\n";
  BOOST_TEST((next_incarnation(folder / "", proxy.id).error().kind == ErrorKind::invalid));
  const auto not_kept = next_incarnation(folder / "missing", proxy.id);
  BOOST_TEST_REQUIRE(error_of(not_kept) == "");
  BOOST_TEST(!not_kept->kept.has_value());
}

namespace {

struct Cache {
  LastValues values{1 << 20, 3};
  Author author{nullptr, proxy.id};

  bool put(const Packet& packet, Duration at) {
    const auto views = packet.views();
    const auto header = read_header(views, nullptr);
    BOOST_TEST_REQUIRE(header.has_value());
    return values.put(*header, views, instant_at(at));
  }
  std::string topics(Duration at, std::string_view prefix = "") {
    std::string out;
    std::string after;
    while (const auto* value = values.next(prefix, after, instant_at(at)))
      after = value->topic, out += after + " ";
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(of_what_is_not_read_in_time_the_oldest_goes) {
  zmq::context_t context;
  zmq::socket_t from(context, zmq::socket_type::pair), to(context, zmq::socket_type::pair);
  to.bind("inproc://backlog");
  from.connect("inproc://backlog");
  const auto say = [&](const std::string& topic, std::size_t bytes) {
    const std::string body(bytes, 'x');
    BOOST_TEST(send_frames(from, std::array{as_frame(topic), as_frame(body)}));
  };
  Backlog backlog(3, 1000);
  Parts parts;
  const auto next = [&] { return backlog.take(parts) ? std::string(as_text(parts.frames()[0])) : "none"; };
  BOOST_TEST(backlog.fill(to) == 0u);
  for (const char* topic : {"a", "b", "c", "d", "e"}) say(topic, 10);
  BOOST_TEST(backlog.fill(to) == 2u);
  BOOST_TEST(next() == "c");
  say("f", 985);
  BOOST_TEST(backlog.fill(to) == 1u);  // d, for its bytes
  say("g", 5000);
  BOOST_TEST(backlog.fill(to) == 2u);  // one that is too long stays until the next comes
  BOOST_TEST(next() == "g");
  BOOST_TEST(next() == "none");
  BOOST_TEST(backlog.empty());
}

BOOST_AUTO_TEST_CASE(the_cache_keeps_the_latest_value_of_each_topic) {
  Cache cache;
  const auto first = cache.author.say(signal_of("e1"));
  const auto second = cache.author.say(signal_of("e1"));
  BOOST_TEST(cache.put(second, 1s));
  BOOST_TEST(!cache.put(first, 1s));
  BOOST_TEST(!cache.put(second, 1s));
  BOOST_TEST(cache.put(cache.author.say(signal_of("e2")), 2s));
  BOOST_TEST(cache.topics(3s) == "signal/east/e1/ signal/east/e2/ ");
  BOOST_TEST(cache.topics(3s, "signal/east/e2/") == "signal/east/e2/ ");
  BOOST_TEST(cache.topics(3s, "beat/") == "");
  BOOST_TEST(cache.values.next("", "", instant_at(3s))->age(instant_at(3s)) == Duration(2s));
}

BOOST_AUTO_TEST_CASE(the_cache_lets_go_what_is_old_superseded_or_too_much) {
  Cache cache;
  BOOST_TEST(cache.put(cache.author.say(signal_of("e1")), 1s));
  BOOST_TEST(cache.put(cache.author.say(decision_of("d")), 1s));  // passed on, never kept
  BOOST_TEST(cache.topics(11s) == "signal/east/e1/ ");
  BOOST_TEST(cache.topics(11s + 1ns) == "");
  BOOST_TEST(cache.values.bytes() == 0u);

  Author new_life{nullptr, proxy.id, {2, 5}};
  BOOST_TEST(cache.put(new_life.say(signal_of("e1")), 20s));
  BOOST_TEST(!cache.put(cache.author.say(signal_of("e1")), 20s));
  for (const std::string_view engine : {"e2", "e3", "e4"})
    BOOST_TEST(cache.put(new_life.say(signal_of(engine)), 21s));
  BOOST_TEST(cache.topics(21s) == "signal/east/e2/ signal/east/e3/ signal/east/e4/ ");
  BOOST_TEST(cache.values.evicted() == 1u);
}
