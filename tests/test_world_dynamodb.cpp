// The simulated DynamoDB: next to an engine on random requests, and by itself
// where that engine is wrong.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>

#include "tests/support/engine.hpp"
#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"
#include "tests/world/dynamodb/service.hpp"

namespace {

struct Fixture {
  Fixture() { service.create_table("locks", {"name", ""}); }

  // Its status, and what it says behind the type's name.
  std::string call(const char* operation, const std::string& body) {
    const world::Reply reply =
        service.call(operation, R"({"TableName":"locks",)" + body + "}");
    return std::to_string(reply.status) + " " +
           reply.body.substr(reply.body.find('#') + 1);
  }
  std::string update(const std::string& expression, const std::string& values,
                     const std::string& more = "") {
    return call("UpdateItem",
                R"("Key":{"name":{"S":"a"}},"UpdateExpression":")" +
                    expression + "\"" +
                    (values.empty()
                         ? ""
                         : R"(,"ExpressionAttributeValues":{)" + values + "}") +
                    more);
  }
  std::string transact(const std::string& parts, const std::string& token) {
    return service
        .call("TransactWriteItems", R"({"TransactItems":[)" + parts +
                                        R"(],"ClientRequestToken":")" + token +
                                        "\"}")
        .body;
  }
  std::string item() const { return service.item("locks", "a"); }

  world::Service service;
};

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(world_dynamodb)

BOOST_AUTO_TEST_CASE(it_answers_random_requests_as_an_engine_does) {
  if (tests::any_engine_kind() != tests::EngineKind::dynoxide) return;
  const tests::Ran ran =
      tests::shell(tests::program_path("world/dynamodb/compare") + " 2000 9");
  BOOST_TEST(ran.status == 0, ran.said);
  BOOST_TEST(ran.said.find("2000 requests, ") != ran.said.npos, ran.said);
}

BOOST_FIXTURE_TEST_CASE(all_old_of_an_item_that_was_not_there_is_nothing,
                        Fixture) {
  BOOST_TEST(update("SET x = :x", R"(":x":{"N":"1"})",
                    R"(,"ReturnValues":"ALL_OLD")") == "200 {}");
}

BOOST_FIXTURE_TEST_CASE(what_is_wrong_whatever_the_item_is_comes_first,
                        Fixture) {
  for (
      const char* condition :
      {R"("x = :x","ExpressionAttributeValues":{":x":{"S":"1"},":y":{"S":""}})",
       R"("x = :x AND y = :z","ExpressionAttributeValues":{":x":{"S":"1"}})",
       R"x("attribute_type(x, :x)","ExpressionAttributeValues":{":x":{"S":"Q"}})x",
       R"("x BETWEEN :x AND :y","ExpressionAttributeValues":)"
       R"({":x":{"N":"1"},":y":{"S":"2"}})",
       R"("name = :x","ExpressionAttributeValues":{":x":{"S":"1"}})",
       R"x("((x = :x))","ExpressionAttributeValues":{":x":{"S":"1"}})x"}) {
    const std::string said =
        call("PutItem", R"("Item":{"name":{"S":"a"}},"ConditionExpression":)" +
                            std::string(condition));
    BOOST_TEST(begins(said, "400 ValidationException"), said);
  }
  BOOST_TEST(service.size("locks") == 0u);
}

BOOST_FIXTURE_TEST_CASE(transaction_is_done_whole_or_not_at_all, Fixture) {
  const std::string put =
      R"({"Put":{"TableName":"locks","Item":{"name":{"S":"b"}}}})";
  update("SET x = :x", R"(":x":{"N":"1"})");
  const std::string said =
      transact(put + R"(,{"ConditionCheck":{"TableName":"locks",)"
                     R"("Key":{"name":{"S":"a"}},)"
                     R"x("ConditionExpression":"attribute_not_exists(x)",)x"
                     R"("ReturnValuesOnConditionCheckFailure":"ALL_OLD"}})",
               "one");
  BOOST_TEST(said.find(R"("CancellationReasons":[{"Code":"None"},{"Code":)"
                       R"("ConditionalCheckFailed","Item":{"name":{"S":"a"},)"
                       R"("x":{"N":"1"}},)") != said.npos,
             said);
  BOOST_TEST(service.size("locks") == 1u);
  BOOST_TEST(transact(put, "one") == "{}");
  BOOST_TEST(service.size("locks") == 2u);
}

BOOST_FIXTURE_TEST_CASE(token_is_known_for_ten_minutes, Fixture) {
  const std::string count =
      R"({"Update":{"TableName":"locks","Key":{"name":{"S":"a"}},)"
      R"("UpdateExpression":"ADD x :x",)"
      R"("ExpressionAttributeValues":{":x":{"N":"1"}}}})";
  for (const int second : {0, 1, 599}) {
    service.set_time(std::chrono::seconds(second));
    BOOST_TEST(transact(count, "one") == "{}");
    BOOST_TEST(item() == R"({"name":{"S":"a"},"x":{"N":"1"}})");
  }
  const std::string other =
      R"({"Put":{"TableName":"locks","Item":{"name":{"S":"b"}}}})";
  BOOST_TEST(
      transact(other, "one").find("IdempotentParameterMismatchException") !=
      std::string::npos);
  service.set_time(std::chrono::seconds(600));
  transact(count, "one");
  BOOST_TEST(item() == R"({"name":{"S":"a"},"x":{"N":"2"}})");
}

BOOST_FIXTURE_TEST_CASE(key_stays_as_it_is, Fixture) {
  const std::string said = transact(
      R"({"Update":{"TableName":"locks","Key":{"name":{"S":"a"}},)"
      R"("UpdateExpression":"SET #n = :n","ExpressionAttributeNames":)"
      R"({"#n":"name"},"ExpressionAttributeValues":{":n":{"S":"b"}}}})",
      "one");
  BOOST_TEST(said.find("TransactionCanceledException") != said.npos, said);
  BOOST_TEST(service.size("locks") == 0u);
}

BOOST_FIXTURE_TEST_CASE(page_ends_at_a_megabyte, Fixture) {
  const std::string large(300'000, 'x');
  for (const char* name : {"a", "b", "c", "d"}) {
    call("PutItem", R"("Item":{"name":{"S":")" + std::string(name) +
                        R"("},"x":{"S":")" + large + "\"}}");
  }
  const std::string page = call("Scan", R"("ConsistentRead":true)");
  BOOST_TEST(page.find(R"("Count":3,"ScannedCount":3,"LastEvaluatedKey":)") !=
             page.npos);
}

BOOST_FIXTURE_TEST_CASE(numbers_have_the_order_of_their_size, Fixture) {
  std::string before = "-1E+3";
  for (const char* number :
       {"-10", "-9", "-2", "-1.5", "-0.2", "0", "0.5", "1", "9", "10", "1e2"}) {
    update("SET x = :x", R"(":x":{"N":")" + before + "\"}");
    const std::string said =
        update("SET y = :x", R"(":x":{"N":")" + std::string(number) + "\"}",
               R"(,"ConditionExpression":"x < :x AND NOT x >= :x")");
    BOOST_TEST(said == "200 {}", before << " < " << number << ": " << said);
    before = number;
  }
}

BOOST_FIXTURE_TEST_CASE(item_has_at_most_400_kilobytes, Fixture) {
  const auto put = [this](std::size_t size) {
    return call("PutItem", R"("Item":{"name":{"S":"a"},"x":{"S":")" +
                               std::string(size, 'x') + "\"}}");
  };
  // "name", "a" and "x" are six of them.
  BOOST_TEST(put(400 * 1024 - 6) == "200 {}");
  BOOST_TEST(begins(put(400 * 1024 - 5), "400 ValidationException"));
}

BOOST_FIXTURE_TEST_CASE(what_no_client_sends_is_refused_as_not_simulated,
                        Fixture) {
  const std::string refused = "501 NotSimulated";
  BOOST_TEST(begins(
      call("GetItem", R"("Key":{"name":{"S":"a"}},"ConsistantRead":true)"),
      refused));
  BOOST_TEST(begins(call("BatchGetItem", R"("Keys":[])"), refused));
  for (const char* expression :
       {"SET x.y = :x", "SET x[1] = :x", "SET x = y", "SET x = x + :x",
        "SET x = if_not_exists(x, :x)", "DELETE x :x"}) {
    const std::string said = update(expression, R"(":x":{"N":"1"})");
    BOOST_TEST(begins(said, refused), expression << ": " << said);
  }
  BOOST_TEST(begins(update("ADD x :x", R"(":x":{"SS":["a"]})"), refused));
  BOOST_TEST(begins(update("SET x = :x", R"(":x":{"N":"1"})",
                           R"(,"ReturnValues":"UPDATED_NEW")"),
                    refused));
  BOOST_TEST(begins(
      call(
          "DeleteItem",
          R"("Key":{"name":{"S":"a"}},"ConditionExpression":)"
          R"x("contains(x, :x)","ExpressionAttributeValues":{":x":{"N":"1"}})x"),
      refused));
  BOOST_TEST(
      begins(call("Query", R"("KeyConditionExpression":"x > :x",)"
                           R"("ExpressionAttributeValues":{":x":{"S":"1"}})"),
             refused));
}

BOOST_AUTO_TEST_SUITE_END()
