// Put before each file with tests, as standard.hpp before the others.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/standard.hpp"
#include "tests/support/check.hpp"
