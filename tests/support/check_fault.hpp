// A check of an answer's fault that tells what there was instead.
#ifndef DDBMUTEX_TESTS_SUPPORT_CHECK_FAULT_HPP
#define DDBMUTEX_TESTS_SUPPORT_CHECK_FAULT_HPP

#include <boost/test/unit_test.hpp>

#include "ddbmutex/dynamodb/answer.hpp"

namespace tests {

inline void check_fault(const ddbmutex::dynamodb::Answer& answer,
                        ddbmutex::dynamodb::Fault expected, int line) {
  BOOST_TEST((answer.fault == expected),
             "line " << line << ": " << name_of(answer.fault) << ", not "
                     << name_of(expected) << " (" << answer.message << ")");
}

}  // namespace tests

#define CHECK_FAULT(answer, expected) \
  ::tests::check_fault(answer, expected, __LINE__)

#endif  // DDBMUTEX_TESTS_SUPPORT_CHECK_FAULT_HPP
