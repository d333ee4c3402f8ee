#include <boost/test/unit_test.hpp>
#include <map>

#include "messages/base/rng.hpp"
#include "tools/engine_sim/machine/blocks.hpp"

using namespace signalbox;
using namespace signalbox::engine_sim;

BOOST_AUTO_TEST_SUITE(blocks)

BOOST_AUTO_TEST_CASE(nameless_blocks_go_first_then_the_least_recently_freed) {
  BlockPool pool(3);
  BlockHash evicted = 0;
  const BlockId a = pool.take(evicted), b = pool.take(evicted), c = pool.take(evicted);
  BOOST_TEST(pool.name(a, 10));
  BOOST_TEST(pool.name(b, 20));
  BOOST_TEST(!pool.name(c, 10));  // the name is taken
  pool.release(b);
  pool.release(a);
  pool.release(c);
  BOOST_TEST((pool.take(evicted) == c && evicted == 0));
  BOOST_TEST((pool.take(evicted) == b && evicted == 20));
  BOOST_TEST((pool.take(evicted) == a && evicted == 10));
  BOOST_TEST(pool.free_blocks() == 0u);
}

BOOST_AUTO_TEST_CASE(sharing_saves_a_free_block_from_eviction) {
  BlockPool pool(2);
  BlockHash evicted = 0;
  const BlockId a = pool.take(evicted);
  pool.name(a, 10);
  pool.release(a);
  pool.share(a);
  pool.share(a);
  BOOST_TEST(pool.used_blocks() == 1u);
  BOOST_TEST(pool.take(evicted) != a);
  pool.release(a);
  BOOST_TEST(!pool.is_free(a));
  pool.release(a);
  BOOST_TEST(pool.is_free(a));
  BOOST_TEST((pool.find(10) == a));
}

BOOST_AUTO_TEST_CASE(random_operations_keep_lists_counts_and_names_in_agreement) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    BlockPool pool(1 + static_cast<std::uint32_t>(rng.below(12)));
    std::map<BlockId, int> references;
    std::map<BlockId, BlockHash> names;
    for (int i = 0; i < 400; ++i) {
      const BlockHash hash = 1 + rng.below(20);
      switch (rng.below(4)) {
        case 0:
          if (pool.free_blocks() > 0) {
            BlockHash evicted = 0;
            const BlockId id = pool.take(evicted);
            BOOST_REQUIRE(!references.count(id));
            BOOST_REQUIRE(evicted == (names.count(id) ? names[id] : 0));
            names.erase(id);
            references[id] = 1;
          }
          break;
        case 1:
          if (const auto id = pool.find(hash)) {
            BOOST_REQUIRE(names.at(*id) == hash);
            pool.share(*id), ++references[*id];
          }
          break;
        case 2:
          if (!references.empty()) {
            const BlockId id = references.begin()->first;
            pool.release(id);
            if (--references[id] == 0) references.erase(id);
          }
          break;
        case 3:
          if (!references.empty() && !names.count(references.rbegin()->first))
            if (pool.name(references.rbegin()->first, hash)) names[references.rbegin()->first] = hash;
          break;
      }
      BOOST_REQUIRE(pool.consistent());
      BOOST_REQUIRE(pool.used_blocks() == references.size());
      BOOST_REQUIRE(pool.named_blocks() == names.size());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
