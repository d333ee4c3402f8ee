// The main of every Boost.Test program; its module is named after the room under test.
#define BOOST_TEST_MODULE SIGNALBOX_TEST_MODULE
#include <boost/test/unit_test.hpp>
