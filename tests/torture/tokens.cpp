#include "tests/torture/tokens.hpp"

#include <algorithm>

namespace torture {
namespace {

struct Got {
  const MutexLog* log;
  const Acquisition* it;
};

std::string words_of(Token token) { return std::to_string(token); }
std::string words_of(const Got& got) {
  return words_of(got.it->token) + " to " + got.log->who();
}

// Of one name.
class Judge {
 public:
  Judge(const History& history, const std::string& name)
      : history_(history), name_(name) {
    for (const MutexLog& log : history.logs) {
      if (log.name != name) continue;
      for (const Acquisition& it : log.acquisitions)
        all_.push_back({&log, &it});
      kept_ = kept_ || log.kept;
    }
    std::sort(all_.begin(), all_.end(), [](const Got& a, const Got& b) {
      return a.it->token < b.it->token;
    });
  }

  std::vector<std::string> judge() {
    if (!kept_) return {};
    judge_each();
    judge_order();
    judge_calls();
    judge_end();
    return std::move(problems_);
  }

 private:
  std::string at(nanoseconds time) const { return history_.moment(time); }
  void wrong(const std::string& words) {
    problems_.push_back(name_ + ": " + words);
  }

  void judge_each() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Got& got = all_[i];
      if (got.it->token == 0) {
        wrong("gave " + words_of(got) + " at " + at(got.it->acquired));
      }
      if (i == 0 || all_[i - 1].it->token != got.it->token) continue;
      wrong("gave " + words_of(all_[i - 1]) + " at " +
            at(all_[i - 1].it->acquired) + ", and " + words_of(got) + " at " +
            at(got.it->acquired));
    }
  }

  // Of those that held the lock when they said so: in that order.  By others
  // it may have been lost, and another's, before they came to say it.
  void judge_order() {
    std::vector<Got> held;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(held),
                 [](const Got& got) { return got.it->held(); });
    std::stable_sort(held.begin(), held.end(), [](const Got& a, const Got& b) {
      return a.it->acquired < b.it->acquired;
    });
    for (std::size_t i = 1; i < held.size(); ++i) {
      if (held[i - 1].it->token < held[i].it->token) continue;
      wrong("gave " + words_of(held[i - 1]) + " at " +
            at(held[i - 1].it->acquired) + ", then " + words_of(held[i]) +
            " at " + at(held[i].it->acquired));
    }
  }

  // Of all: a call that began after another had returned got a higher one.
  void judge_calls() {
    std::vector<Got> by_return = all_;
    std::sort(by_return.begin(), by_return.end(),
              [](const Got& a, const Got& b) {
                return a.it->acquired < b.it->acquired;
              });
    std::vector<Got> by_call = all_;
    std::sort(by_call.begin(), by_call.end(), [](const Got& a, const Got& b) {
      return a.it->wanted < b.it->wanted;
    });
    const Got* highest = nullptr;
    auto returned = by_return.begin();
    for (const Got& got : by_call) {
      for (; returned != by_return.end() &&
             returned->it->acquired < got.it->wanted;
           ++returned) {
        if (highest == nullptr || returned->it->token > highest->it->token) {
          highest = &*returned;
        }
      }
      if (highest == nullptr || highest->it->token < got.it->token) continue;
      wrong("gave " + words_of(*highest) + ", and " + words_of(got) +
            " by a call that began later, at " + at(got.it->wanted));
    }
  }

  void judge_end() {
    const Token highest = all_.empty() ? 0 : all_.back().it->token;
    for (const Taken& taken : history_.taken) {
      if (taken.name != name_ || taken.token > highest) continue;
      wrong("gave " + words_of(taken.token) + " after the run, and " +
            words_of(highest) + " in it");
    }
  }

  const History& history_;
  const std::string name_;
  bool kept_ = false;
  std::vector<Got> all_;  // By token.
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> judge_tokens(const History& history) {
  std::vector<std::string> all;
  for (const std::string& name : history.names()) {
    const auto problems = Judge(history, name).judge();
    all.insert(all.end(), problems.begin(), problems.end());
  }
  return all;
}

}  // namespace torture
