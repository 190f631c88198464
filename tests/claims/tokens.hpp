// What processes say of the fencing tokens that they were given, and whether
// the tokens kept their promise: higher with each acquisition of a name,
// whoever made it, and none given twice.
//
//   TokenLog log(directory + "/3.12");  // In each process.
//   log.granted(lock, token, time, time + mutex.remaining());
//   log.ended(lock, token, now());
//
//   std::ifstream in(directory + "/3.12");
//   const auto read = TokenReader(3).read(in);
//   const TokenFindings found = judge_tokens(read.grants);
//
// A file for each process, which a kill may end anywhere.  Times are
// nanoseconds of the boot clock, which all processes of a machine share, and so
// order the acquisitions without regard to their tokens:
//
//   granted LOCK TOKEN TIME UNTIL  the lock was held at TIME, and promised
//   given LOCK TOKEN               lock() had returned, but it was lost already
//   ended LOCK TOKEN TIME          unlock() began then, or the lease was over
//   failed WHAT
#ifndef DDBMUTEX_TESTS_CLAIMS_TOKENS_HPP
#define DDBMUTEX_TESTS_CLAIMS_TOKENS_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/claims/claims.hpp"

namespace claims {

using Token = std::uint64_t;

// False of any member: it could not be written.
class TokenLog : private LogWriter {
 public:
  using LogWriter::failed;
  using LogWriter::LogWriter;

  bool granted(int lock, Token token, nanoseconds time, nanoseconds until) {
    return line("granted" + words(lock, token) + word(time) + word(until));
  }
  bool given(int lock, Token token) {
    return line("given" + words(lock, token));
  }
  bool ended(int lock, Token token, nanoseconds time) {
    return line("ended" + words(lock, token) + word(time));
  }

 private:
  static std::string words(int lock, Token token) {
    return " " + std::to_string(lock) + " " + std::to_string(token);
  }
  static std::string word(nanoseconds time) {
    return " " + std::to_string(time.count());
  }
};

// One acquisition.
struct Grant {
  int process = 0;
  int lock = 0;
  Token token = 0;
  // When the lock was held, and until when at the most; nothing: it was lost
  // before anybody could look.
  std::optional<Claim> claim;
};

struct TokenRecord {
  std::vector<Grant> grants;  // As they were written.
  std::string problem;        // Empty if all lines were as they should be.
};

class TokenReader {
 public:
  explicit TokenReader(int process) : process_(process) {}

  // A last line without its end was cut short by a kill, and does not count.
  TokenRecord read(std::istream& in) {
    std::string line;
    while (std::getline(in, line) && !in.eof() && record_.problem.empty()) {
      if (!understand(line)) record_.problem = "unexpected '" + line + "'";
    }
    return std::move(record_);
  }

 private:
  bool understand(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    Grant grant;
    words >> word >> grant.lock >> grant.token;
    grant.process = process_;
    if (!words) return false;
    if (word == "ended") return end(grant, words);
    if (word == "granted" && !claim(grant, words)) return false;
    if (word != "granted" && word != "given") return false;
    if (grant.claim) open_[{grant.lock, grant.token}] = record_.grants.size();
    record_.grants.push_back(grant);
    return true;
  }

  bool claim(Grant& grant, std::istream& words) const {
    long long time = 0, until = 0;
    if (!(words >> time >> until) || until <= time) return false;
    grant.claim = Claim{process_, nanoseconds(time), nanoseconds(until)};
    return true;
  }

  // It had been promised for longer, or was renewed meanwhile.
  bool end(const Grant& which, std::istream& words) {
    long long time = 0;
    const auto open = open_.find({which.lock, which.token});
    if (open == open_.end() || !(words >> time)) return false;
    Claim& claim = *record_.grants[open->second].claim;
    open_.erase(open);
    claim.end = nanoseconds(time);
    return claim.end >= claim.begin;
  }

  const int process_;
  TokenRecord record_;
  // Those that have not ended, by lock and token.
  std::map<std::pair<int, Token>, std::size_t> open_;
};

// --- What is found -----------------------------------------------------------

struct TokenFindings {
  std::vector<std::string> wrong;
  std::map<int, std::size_t> grants;  // By lock.
  std::map<int, Token> highest;       // Given, by lock.
  std::size_t all = 0;
  int hand_overs = 0;  // From one process to another.
};

namespace detail {

inline std::string words_of(const Grant& grant) {
  return std::to_string(grant.token) + " to process " +
         std::to_string(grant.process);
}

// Of one lock.  `all` is in any order.
inline void judge_lock(int lock, std::vector<Grant> all, TokenFindings& found) {
  const std::string name = "lock " + std::to_string(lock) + ": ";
  std::sort(all.begin(), all.end(),
            [](const Grant& a, const Grant& b) { return a.token < b.token; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].token == 0) {
      found.wrong.push_back(name + "gave " + words_of(all[i]));
    }
    if (i == 0 || all[i - 1].token != all[i].token) continue;
    found.wrong.push_back(name + "gave " + words_of(all[i - 1]) + " and " +
                          words_of(all[i]));
  }
  found.highest[lock] = all.back().token;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const Grant& one) { return !one.claim; }),
            all.end());
  std::stable_sort(all.begin(), all.end(), [](const Grant& a, const Grant& b) {
    return a.claim->begin < b.claim->begin;
  });
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < all.size(); ++i) {
    claims.push_back(*all[i].claim);
    if (i == 0 || all[i - 1].token < all[i].token) continue;
    found.wrong.push_back(name + "gave " + words_of(all[i - 1]) + ", then " +
                          words_of(all[i]));
  }
  const Findings held = judge(claims);
  found.hand_overs += held.hand_overs;
  for (const Overlap& one : held.overlaps) {
    found.wrong.push_back(name + "was held at once by " + words_of(one));
  }
}

}  // namespace detail

// Of all processes together, in any order.
inline TokenFindings judge_tokens(const std::vector<Grant>& grants) {
  std::map<int, std::vector<Grant>> by_lock;
  for (const Grant& grant : grants) by_lock[grant.lock].push_back(grant);
  TokenFindings found;
  found.all = grants.size();
  for (const auto& [lock, all] : by_lock) {
    found.grants[lock] = all.size();
    detail::judge_lock(lock, all, found);
  }
  return found;
}

// What the row says of a lock in the end, against what was given; empty if they
// agree.  A number that nobody got was taken by a process that was killed
// before it could say so, or by a request whose answer was lost.
inline std::string row_problem(const TokenFindings& found, int lock,
                               Token token) {
  const auto grants = found.grants.find(lock);
  if (grants == found.grants.end()) return "";
  const std::string row = "lock " + std::to_string(lock) + ": its row says " +
                          std::to_string(token);
  if (token < grants->second) {
    return row + " after " + std::to_string(grants->second) + " acquisitions";
  }
  const Token highest = found.highest.at(lock);
  if (token >= highest) return "";
  return row + ", but " + std::to_string(highest) + " was given";
}

}  // namespace claims

#endif  // DDBMUTEX_TESTS_CLAIMS_TOKENS_HPP
