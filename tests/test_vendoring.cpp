// The library in other people's builds: each compiles without a warning, and
// the program it makes runs.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/shell.hpp"

namespace {

namespace fs = std::filesystem;
using namespace tests;

// The library's files of one kind, from the top of the project, by their names.
std::vector<std::string> library_files(const std::string& extension) {
  std::vector<std::string> files = {"ddbmutex" + extension};
  for (const char* room : {"ddbmutex", "sigv4"}) {
    for (const auto& entry : fs::directory_iterator(project() / room)) {
      if (entry.path().extension() != extension) continue;
      files.push_back(room / entry.path().filename());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string compiler() {
  const char* name = std::getenv("CXX");
  return name == nullptr ? "g++" : name;
}

// --- An application ----------------------------------------------------------

// Its folder: a program, and headers of its own by all names that the library
// has for some, which are not for the library.
class Application {
 public:
  Application() {
    std::string program;
    for (const std::string& header : library_files(".hpp")) {
      if (header == "ddbmutex.hpp") continue;
      const std::string name = fs::path(header).filename().string();
      for (const std::string& own : {name, "lock/" + name, header}) {
        fs::create_directories((home_.root / own).parent_path());
        home_.write(own,
                    "#ifndef APPLICATION\n"
                    "#error \"taken for the library's own\"\n"
                    "#endif\n");
        program += "#include \"" + own + "\"\n";
      }
    }
    home_.write("report.cpp", program + read_file("examples/ten_lines.cpp"));
  }

  std::string folder() const { return home_.root.string(); }
  std::string path(const std::string& name) const {
    return (home_.root / name).string();
  }

  // Runs commands that make its program of the name `report`, without a word
  // but `said`.
  void make(const std::string& commands) const {
    const Ran ran =
        shell("set -e; app='" + folder() + "' cxx='" + compiler() +
              " -std=c++17 -pthread -O0 -Wall -Wextra -Werror'\n" + commands);
    BOOST_TEST_REQUIRE(ran.status == 0, ran.said);
    BOOST_TEST(ran.said == "");
  }

  // It does what the example does, on an engine.
  void run() const {
    static Engine engine(any_engine_kind());
    static const std::string environment = with_usual_table(engine);
    const Ran ran =
        shell("env -i " + environment + " '" + path("report") + "'");
    BOOST_TEST(ran.status == 0);
    BOOST_TEST(ran.said == "page 1\npage 2\npage 3\n");
  }

 private:
  // What leads a program to it, the table being there.
  static std::string with_usual_table(const Engine& engine) {
    const auto keys = engine.credentials();
    ddbmutex::TableOptions options;
    options.endpoint = engine.url();
    options.region = engine.region();
    options.credentials = {keys->access_key_id, keys->secret_access_key, ""};
    std::error_code error;
    ddbmutex::Table table(options);
    table.create(error);
    BOOST_TEST_REQUIRE(!error, table.last_error());
    return "HOME=/nonexistent AWS_EC2_METADATA_DISABLED=true"
           " AWS_ENDPOINT_URL_DYNAMODB=" +
           engine.url() + " AWS_REGION=" + engine.region() +
           " AWS_ACCESS_KEY_ID=" + keys->access_key_id +
           " AWS_SECRET_ACCESS_KEY=" + keys->secret_access_key;
  }

  const Home home_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(vendoring)

// The objects are those of this build, which were compiled one by one, and with
// more warnings than here.
BOOST_AUTO_TEST_CASE(all_objects_fit_into_one_folder) {
  const Application application;
  const char* build = std::getenv("DDBMUTEX_BUILD");
  BOOST_TEST_REQUIRE(build != nullptr, "which build is to be tested?");
  std::string objects;
  for (std::string file : library_files(".cpp")) {
    file.replace(file.size() - 4, 4, ".o");
    objects += " '" + std::string(build) + "/" + file + "'";
  }
  application.make(
      "mkdir \"$app/flat\"\n"
      "for object in" +
      objects +
      "; do\n"
      "  ! [ -e \"$app/flat/${object##*/}\" ]\n"
      "  cp \"$object\" \"$app/flat\"\n"
      "done\n"
      "$cxx -DAPPLICATION -I \"$app\" -I . -c \"$app/report.cpp\""
      "  -o \"$app/flat/report.o\"\n"
      "$cxx ${CXXFLAGS-} \"$app\"/flat/*.o -lcurl -lcrypto -o \"$app/report\"");
  application.run();
}

BOOST_AUTO_TEST_CASE(all_sources_fit_into_one_file) {
  const Application application;
  std::string all;
  for (const std::string& file : library_files(".cpp")) {
    all += "#include \"" + fs::absolute(project() / file).string() + "\"\n";
  }
  std::ofstream(application.path("library.cpp")) << all;
  application.make(
      "$cxx -I \"$app\" -c \"$app/library.cpp\" -o \"$app/library.o\" &\n"
      "$cxx -DAPPLICATION -I \"$app\" -I . -c \"$app/report.cpp\""
      "  -o \"$app/report.o\"\n"
      "wait $!\n"
      "$cxx \"$app\"/*.o -lcurl -lcrypto -o \"$app/report\"");
  application.run();
}

BOOST_AUTO_TEST_CASE(cmake_builds_it_by_unity_build) {
  if (shell("command -v cmake").status != 0) {
    BOOST_TEST_MESSAGE(
        "cmake is not there, so UNITY_BUILD is not tested; "
        "install it: apt-get install cmake");
    return;
  }
  const Application application;
  application.make(
      "{ cmake -S tests/vendoring -B \"$app\" -DCMAKE_CXX_COMPILER='" +
      compiler() +
      "' -DLIBRARY=\"$PWD\" -DAPPLICATION=\"$app\" &&\n"
      "  cmake --build \"$app\" --parallel \"$(nproc)\"; } >\"$app/log\" 2>&1 "
      "||\n"
      "  { cat \"$app/log\"; exit 1; }");
  application.run();
}

BOOST_AUTO_TEST_SUITE_END()
