// Requests and what signing them must give: facts, restated, of the signing
// test suite of aws-c-auth (tests/aws-signing-test-suite/v4, header form;
// Copyright Amazon.com, Inc. or its affiliates, Apache License 2.0), and, from
// "dynamodb-" on, of requests to DynamoDB on which libcurl's signer agrees.
#ifndef DDBMUTEX_TESTS_SIGV4_VECTORS_HPP
#define DDBMUTEX_TESTS_SIGV4_VECTORS_HPP

#include <cstdint>
#include <string_view>
#include <vector>

#include "sigv4/sigv4.hpp"

struct Sigv4Vector {
  std::string_view name;
  std::string_view method, path;
  std::vector<ddbmutex::sigv4::Header> headers;
  std::string_view signed_headers;
  std::string_view signature;
  std::string_view body = "";
  std::string_view session_token = "";
  ddbmutex::sigv4::Scope scope = {"us-east-1", "service"};
  std::int64_t unix_seconds = 1440938160;
};

inline const std::vector<Sigv4Vector>& sigv4_vectors() {
  static const std::vector<Sigv4Vector> vectors = {
      {"get-header-key-duplicate",
       "GET",
       "/",
       {{"Host", "example.amazonaws.com"},
        {"My-Header1", "value2"},
        {"My-Header1", "value2"},
        {"My-Header1", "value1"}},
       "host;my-header1;x-amz-date",
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"get-header-value-order",
       "GET",
       "/",
       {{"Host", "example.amazonaws.com"},
        {"My-Header1", "value4"},
        {"My-Header1", "value1"},
        {"My-Header1", "value3"},
        {"My-Header1", "value2"}},
       "host;my-header1;x-amz-date",
       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
      {"get-relative-normalized",
       "GET",
       "/example/..",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-slash-dot-slash-normalized",
       "GET",
       "/./",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-slash-normalized",
       "GET",
       "//",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-slashes-normalized",
       "GET",
       "//example//",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
      {"get-space-normalized",
       "GET",
       "/example space/",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-unreserved",
       "GET",
       "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-vanilla",
       "GET",
       "/",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"post-header-value-case",
       "POST",
       "/",
       {{"Host", "example.amazonaws.com"}, {"My-Header1", "VALUE1"}},
       "host;my-header1;x-amz-date",
       "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
      {"post-sts-header-before",
       "POST",
       "/",
       {{"Host", "example.amazonaws.com"}},
       "host;x-amz-date;x-amz-security-token",
       "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
       "",
       "AQoDYXdzEPT//////////"
       "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP"
       "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/"
       "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75Y"
       "U9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+"
       "scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="},
      {"post-x-www-form-urlencoded",
       "POST",
       "/",
       {{"Content-Type", "application/x-www-form-urlencoded"},
        {"Host", "example.amazonaws.com"},
        {"Content-Length", "13"},
        {"x-amz-content-sha256",
         "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}},
       "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
       "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
       "Param1=value1"},
      {"dynamodb-get-utf8-day-rollover",
       "POST",
       "/",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.us-east-1.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.GetItem"}},
       "content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
       "98891cc3db32895d5ac9d8f81782c0d5096faa6bbf81188ff81d319f833cba01",
       "{\"TableName\":\"locks\",\"Key\":{\"name\":{\"S\":"
       "\"Gr\303\266\303\237e/\346\227\245\346\234\254 "
       "\\\"q\\\"\\\\\"}},\"ConsistentRead\":true}",
       "IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==",
       {"us-east-1", "dynamodb"},
       1704067200},
      {"dynamodb-put-us-east-1",
       "POST",
       "/",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.us-east-1.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.PutItem"}},
       "content-type;host;x-amz-date;x-amz-target",
       "1f991f68132c7a3eecd28508ae58eb646bcb4898b42cf5d9779adafece4be719",
       "{\"TableName\":\"locks\",\"Item\":{\"name\":{\"S\":\"job-7\"},\"uuid\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"},\"expires\":{\"N\":"
       "\"1700000030000\"}},\"ConditionExpression\":\"attribute_not_exists(#n)"
       "\",\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "",
       {"us-east-1", "dynamodb"},
       1700000000},
      {"dynamodb-update-token-eu-west-1",
       "POST",
       "/",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.eu-west-1.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.UpdateItem"}},
       "content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
       "2e6e15b1ca9f1f56adc7bec6a0b34086f1312cd01130220e9d1710a009380cf4",
       "{\"TableName\":\"locks\",\"Key\":{\"name\":{\"S\":\"job-7\"}},"
       "\"UpdateExpression\":\"SET expires = :e\",\"ConditionExpression\":\"#u "
       "= "
       ":u\",\"ExpressionAttributeNames\":{\"#u\":\"uuid\"},"
       "\"ExpressionAttributeValues\":{\":e\":{\"N\":\"1700000060000\"},\":u\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"}},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==",
       {"eu-west-1", "dynamodb"},
       1700000000}};
  return vectors;
}

#endif  // DDBMUTEX_TESTS_SIGV4_VECTORS_HPP
