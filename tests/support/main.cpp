// The main of every Boost.Test program, compiled once; its module is named after the program.
#include <boost/test/unit_test.hpp>
#include <filesystem>

namespace {

bool name_the_module() {
  auto& all = boost::unit_test::framework::master_test_suite();
  all.p_name.value = std::filesystem::path(all.argv[0]).filename().string();
  return true;
}

}  // namespace

int main(int argc, char** argv) { return boost::unit_test::unit_test_main(name_the_module, argc, argv); }
