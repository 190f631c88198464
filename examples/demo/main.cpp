// Shows what ddbmutex is for, and checks that what it shows is so.
//
//   demo [ENGINE [ARGUMENT]...]
//
// With the command of a DynamoDB engine that takes --host and --port, it starts
// that engine for itself.  Without, it runs on the DynamoDB that the
// environment and the profile name, on a table of its own that it creates and
// deletes.  Exit status: 0; 1 if something that was shown was not right; 2 if
// it could not be shown; 128 and the signal's number after Ctrl-C and the like.
//
// worker.cpp is where the lock is used; the rest is theatre.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "examples/demo/place.hpp"
#include "examples/demo/process.hpp"
#include "examples/demo/scenes.hpp"
#include "examples/demo/screen.hpp"
#include "examples/demo/text.hpp"
#include "examples/demo/worker.hpp"

using namespace demo;

namespace {

int show(const std::vector<std::string>& engine) {
  const Folder folder;
  Screen screen;
  Place place(engine, folder);
  screen.say("ddbmutex: one lock for many processes, on any host.");
  screen.say("DynamoDB: " + place.described());
  screen.say("Table:    " + place.table() + " (deleted in the end)");
  screen.say("");
  place.create_table();
  const bool right = show_scenes(place, screen, folder);
  place.delete_table();
  screen.say(right ? "All that was claimed is right."
                   : "Not all that was claimed is right.");
  return right ? 0 : 1;
}

int interrupted() {
  std::printf("\nInterrupted.\n");
  return 128 + remembered_signal();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--play") {
    return play(read_part({words.begin() + 1, words.end()}));
  }
  remember_signals();
  try {
    return show(words);
  } catch (const Interrupted&) {
    return interrupted();
  } catch (const std::exception& error) {
    if (remembered_signal() != 0) return interrupted();
    std::fprintf(stderr, "demo: %s\n", error.what());
    return 2;
  }
}
