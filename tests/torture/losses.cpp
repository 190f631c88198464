#include "tests/torture/losses.hpp"

#include <algorithm>
#include <optional>

#include "tests/torture/words.hpp"

namespace torture {
namespace {

// Which of `left` get a partner of their own in `right`, as many as can, where
// may(i, j) allows the pair: by augmenting paths.
class Pairing {
 public:
  template <class May>
  Pairing(std::size_t left, std::size_t right, const May& may)
      : allowed_(left), partner_(right), paired_(left) {
    for (std::size_t i = 0; i < left; ++i) {
      for (std::size_t j = 0; j < right; ++j) {
        if (may(i, j)) allowed_[i].push_back(j);
      }
    }
    for (std::size_t i = 0; i < left; ++i) {
      tried_.assign(right, false);
      paired_[i] = pair(i);
    }
  }
  bool paired(std::size_t i) const { return paired_[i]; }

 private:
  bool pair(std::size_t i) {
    for (const std::size_t j : allowed_[i]) {
      if (tried_[j]) continue;
      tried_[j] = true;
      if (partner_[j] && !pair(*partner_[j])) continue;
      partner_[j] = i;
      return true;
    }
    return false;
  }

  std::vector<std::vector<std::size_t>> allowed_;
  std::vector<std::optional<std::size_t>> partner_;
  std::vector<bool> paired_;
  std::vector<bool> tried_;
};

// When the loss of one acquisition may be told, if it was lost.
struct Window {
  nanoseconds from;
  nanoseconds expired;  // Up to here with this reason,
  nanoseconds other;    // and to here with another.

  bool allows(const Told& told) const {
    return told.at >= from &&
           told.at <= (told.reason == "expired" ? expired : other);
  }
};

class Judge {
 public:
  Judge(const MutexLog& log, const Lifetime& life,
        const std::vector<Span>& still, const LossBounds& bounds,
        nanoseconds begin)
      : log_(log), life_(life), still_(still), bounds_(bounds), begin_(begin) {
    for (std::size_t i = 0; i < log.acquisitions.size(); ++i) {
      windows_.push_back(window(i));
    }
  }

  // What is said and what was seen need not be paired alike in both: as many
  // of each as can be paired at all can be paired together.
  std::vector<LossProblem> judge() {
    judge_seen();
    judge_told();
    return std::move(problems_);
  }

 private:
  std::string at(nanoseconds time) const { return moment(time - begin_); }
  void blame(nanoseconds time, const std::string& words) {
    problems_.push_back({time, words});
  }

  // After so much time in which the process could run.
  nanoseconds running(nanoseconds from, nanoseconds time) const {
    nanoseconds end = from + time;
    for (const Span& stop : still_) {
      if (stop.end <= from || stop.begin >= end) continue;
      end += stop.end - std::max(stop.begin, from);
    }
    return end;
  }

  // It was not ours before we wanted it, nor before the one before was over.
  nanoseconds earliest(std::size_t i) const {
    const nanoseconds wanted = log_.acquisitions[i].wanted;
    if (i == 0) return wanted;
    const Acquisition& before = log_.acquisitions[i - 1];
    const auto over = before.ended ? before.ended : before.lost_seen;
    return std::max(wanted, over.value_or(wanted));
  }

  Window window(std::size_t i) const {
    const Acquisition& got = log_.acquisitions[i];
    nanoseconds from = earliest(i);
    // It may be told before the holder comes to say that it has the lock.
    if (got.promised > got.acquired) {
      from = std::max(from, got.promised - bounds_.early);
    }
    if (got.loss_was_seen()) {
      const nanoseconds to = running(got.loss_seen_at(), bounds_.tell);
      return {from, to, to};
    }
    if (!got.let_go) return {from, nanoseconds::max(), nanoseconds::max()};
    // What unlock() had no time to say goes on for as long as the lease, and
    // may find that the lock was another's.
    const nanoseconds lease = longer(log_.ttl);
    return {from, running(*got.let_go, bounds_.tell),
            running(*got.let_go, lease + bounds_.tell)};
  }

  bool killed_before(nanoseconds time) const {
    return life_.killed && *life_.killed <= time;
  }

  void judge_seen() {
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const Acquisition& got = log_.acquisitions[i];
      if (!got.loss_was_seen()) continue;
      if (got.loss_seen_at() < got.promised - bounds_.early) {
        blame(got.loss_seen_at(),
              "found its lock lost at " + at(got.loss_seen_at()) +
                  ", though it was promised until " + at(got.promised));
      } else if (!killed_before(windows_[i].expired)) {
        seen.push_back(i);
      }
    }
    const auto may = [&](std::size_t i, std::size_t j) {
      return windows_[seen[i]].allows(log_.losses[j]);
    };
    const Pairing pairing(seen.size(), log_.losses.size(), may);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (pairing.paired(i)) continue;
      const nanoseconds time = log_.acquisitions[seen[i]].loss_seen_at();
      blame(time, "found its lock lost at " + at(time) +
                      ", and was not told so by " +
                      at(windows_[seen[i]].expired));
    }
  }

  void judge_told() {
    const auto may = [&](std::size_t i, std::size_t j) {
      return windows_[j].allows(log_.losses[i]);
    };
    const Pairing pairing(log_.losses.size(), windows_.size(), may);
    for (std::size_t i = 0; i < log_.losses.size(); ++i) {
      if (!pairing.paired(i)) blame_told(log_.losses[i]);
    }
  }

  void blame_told(const Told& told) {
    const Acquisition* last = nullptr;
    for (const Acquisition& got : log_.acquisitions) {
      if (got.acquired <= told.at) last = &got;
    }
    const bool promised =
        last != nullptr && told.at < last->promised - bounds_.early;
    blame(told.at,
          "was told '" + told.reason + "' at " + at(told.at) +
              (promised ? ", though the lock was promised until " +
                              at(last->promised)
                        : ", when there was no loss that had not been told"));
  }

  const MutexLog& log_;
  const Lifetime& life_;
  const std::vector<Span>& still_;  // United.
  const LossBounds bounds_;
  const nanoseconds begin_;
  std::vector<Window> windows_;  // As log_.acquisitions.
  std::vector<LossProblem> problems_;
};

}  // namespace

std::vector<LossProblem> judge_losses(const MutexLog& log, const Lifetime& life,
                                      const std::vector<Span>& still,
                                      const LossBounds& bounds,
                                      nanoseconds begin) {
  return Judge(log, life, still, bounds, begin).judge();
}

}  // namespace torture
