#include "tools/cli/beside.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/cli/state.hpp"

namespace signalbox::cli {

Status become(const std::string& program, const std::string& called,
              const std::vector<std::string>& arguments) {
  const std::string path = std::filesystem::path(own_program()).replace_filename(program).string();
  std::vector<std::string> words{called};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(path.c_str(), argv.data());
  return fail(ErrorKind::unavailable, std::strerror(errno), path,
              "build or install " + program + " beside signalbox");
}

}  // namespace signalbox::cli
