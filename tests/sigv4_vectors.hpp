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
  std::string_view method, path, query;
  std::vector<ddbmutex::sigv4::Header> headers;
  std::string_view body, session_token;
  ddbmutex::sigv4::Scope scope;
  std::int64_t unix_seconds;
  bool normalize_path;

  std::string_view canonical_request;
  std::string_view canonical_request_hash;  // How the string to sign ends.
  std::string_view signature;
};

inline const std::vector<Sigv4Vector>& sigv4_vectors() {
  static const std::vector<Sigv4Vector> vectors = {
      {"get-header-key-duplicate",
       "GET",
       "/",
       "",
       {{"Host", "example.amazonaws.com"},
        {"My-Header1", "value2"},
        {"My-Header1", "value2"},
        {"My-Header1", "value1"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "my-header1:value2,value2,value1\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;my-header1;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "dc7f04a3abfde8d472b0ab1a418b741b7c67174dad1551b4117b15527fbe966c",
       "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},

      {"get-header-value-order",
       "GET",
       "/",
       "",
       {{"Host", "example.amazonaws.com"},
        {"My-Header1", "value4"},
        {"My-Header1", "value1"},
        {"My-Header1", "value3"},
        {"My-Header1", "value2"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "my-header1:value4,value1,value3,value2\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;my-header1;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "31ce73cd3f3d9f66977ad3dd957dc47af14df92fcd8509f59b349e9137c58b86",
       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},

      {"get-relative-normalized",
       "GET",
       "/example/..",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},

      {"get-relative-relative-unnormalized",
       "GET",
       "/example1/example2/../..",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       false,
       "GET\n"
       "/example1/example2/../..\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "76115030c0f3ff06c20fdff5ceb6d5e0b835a1743e00b94fea7c7f381269437b",
       "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b"},

      {"get-slash-dot-slash-normalized",
       "GET",
       "/./",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},

      {"get-slash-normalized",
       "GET",
       "//",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},

      {"get-slash-pointless-dot-unnormalized",
       "GET",
       "/./example",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       false,
       "GET\n"
       "/./example\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "73895e0e829507e28e39fd24669aedc2434a8e179e547e3c075b42921f952cdb",
       "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff"},

      {"get-slashes-normalized",
       "GET",
       "//example//",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/example/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "cb96b4ac96d501f7c5c15bc6d67b3035061cfced4af6585ad927f7e6c985c015",
       "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},

      {"get-space-normalized",
       "GET",
       "/example space/",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/example%20space/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "63ee75631ed7234ae61b5f736dfc7754cdccfedbff4b5128a915706ee9390d86",
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},

      {"get-unreserved",
       "GET",
       "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "6a968768eefaa713e2a6b16b589a8ea192661f098f37349f4e2c0082757446f9",
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},

      {"get-vanilla",
       "GET",
       "/",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},

      {"get-vanilla-query",
       "GET",
       "/",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},

      {"get-vanilla-query-order-key-case",
       "GET",
       "/",
       "Param2=value2&Param1=value1",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "Param1=value1&Param2=value2\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "816cd5b414d056048ba4f7c5386d6e0533120fb1fcfa93762cf0fc39e2cf19e0",
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},

      {"get-vanilla-utf8-query",
       "GET",
       "/",
       "\341\210\264=bar",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "GET\n"
       "/\n"
       "%E1%88%B4=bar\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "eb30c5bed55734080471a834cc727ae56beb50e5f39d1bff6d0d38cb192a7073",
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},

      {"post-header-key-case",
       "POST",
       "/",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "POST\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "553f88c9e4d10fc9e109e2aeb65f030801b70c2f6468faca261d401ae622fc87",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},

      {"post-header-value-case",
       "POST",
       "/",
       "",
       {{"Host", "example.amazonaws.com"}, {"My-Header1", "VALUE1"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "POST\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "my-header1:VALUE1\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;my-header1;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "d51ced243e649e3de6ef63afbbdcbca03131a21a7103a1583706a64618606a93",
       "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},

      {"post-sts-header-before",
       "POST",
       "/",
       "",
       {{"Host", "example.amazonaws.com"}},
       "",
       "AQoDYXdzEPT//////////"
       "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP"
       "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/"
       "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75Y"
       "U9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+"
       "scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==",
       {"us-east-1", "service"},
       1440938160,
       true,
       "POST\n"
       "/\n"
       "\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "x-amz-security-token:AQoDYXdzEPT//////////"
       "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP"
       "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/"
       "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75Y"
       "U9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+"
       "scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==\n"
       "\n"
       "host;x-amz-date;x-amz-security-token\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "c237e1b440d4c63c32ca95b5b99481081cb7b13c7e40434868e71567c1a882f6",
       "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},

      {"post-vanilla-empty-query-value",
       "POST",
       "/",
       "Param1=value1",
       {{"Host", "example.amazonaws.com"}},
       "",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "POST\n"
       "/\n"
       "Param1=value1\n"
       "host:example.amazonaws.com\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "host;x-amz-date\n"
       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
       "9d659678c1756bb3113e2ce898845a0a79dbbc57b740555917687f1b3340fbbd",
       "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},

      {"post-x-www-form-urlencoded",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-www-form-urlencoded"},
        {"Host", "example.amazonaws.com"},
        {"Content-Length", "13"},
        {"x-amz-content-sha256",
         "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}},
       "Param1=value1",
       "",
       {"us-east-1", "service"},
       1440938160,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-length:13\n"
       "content-type:application/x-www-form-urlencoded\n"
       "host:example.amazonaws.com\n"
       "x-amz-content-sha256:"
       "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e\n"
       "x-amz-date:20150830T123600Z\n"
       "\n"
       "content-length;content-type;host;x-amz-content-sha256;x-amz-date\n"
       "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
       "b1edd1d03544c25390e32085d55b57acc9a3961bb59415ff86c45c3d89d16cfb",
       "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},

      {"dynamodb-delete-cn-north-1",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.cn-north-1.amazonaws.com.cn"},
        {"X-Amz-Target", "DynamoDB_20120810.DeleteItem"}},
       "{\"TableName\":\"locks\",\"Key\":{\"name\":{\"S\":\"job-7\"}},"
       "\"ConditionExpression\":\"#u = "
       ":u\",\"ExpressionAttributeNames\":{\"#u\":\"uuid\"},"
       "\"ExpressionAttributeValues\":{\":u\":{\"S\":\"0f8fad5b-d9cb-469f-a165-"
       "70867728950e\"}}}",
       "",
       {"cn-north-1", "dynamodb"},
       1704067199,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb.cn-north-1.amazonaws.com.cn\n"
       "x-amz-date:20231231T235959Z\n"
       "x-amz-target:DynamoDB_20120810.DeleteItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-target\n"
       "3bdf9f983fe054f7287f82f21dc7cee793c0e02d15711b06fe5bd4dfcba5917e",
       "e40e843c19c88d8117ae94903491d6740da4f2185be22f3b87359be8bbe1a409",
       "03637376f7bbcb818e8b927bdc9a9293fa00d848889c7c59b7eb25e8ee6fc8db"},

      {"dynamodb-describe-empty-object",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.us-west-2.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.ListTables"}},
       "{}",
       "",
       {"us-west-2", "dynamodb"},
       1700000000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb.us-west-2.amazonaws.com\n"
       "x-amz-date:20231114T221320Z\n"
       "x-amz-target:DynamoDB_20120810.ListTables\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-target\n"
       "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
       "b2f05e5c205906ab3d24343d326ff3095cfba7d061a3def050fa6e8be289febd",
       "cd2d60e9137edc4e0265f783a15e5eaa73dd719c1aead1104ec40af57e9438c5"},

      {"dynamodb-get-utf8-day-rollover",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.us-east-1.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.GetItem"}},
       "{\"TableName\":\"locks\",\"Key\":{\"name\":{\"S\":"
       "\"Gr\303\266\303\237e/\346\227\245\346\234\254 "
       "\\\"q\\\"\\\\\"}},\"ConsistentRead\":true}",
       "IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==",
       {"us-east-1", "dynamodb"},
       1704067200,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb.us-east-1.amazonaws.com\n"
       "x-amz-date:20240101T000000Z\n"
       "x-amz-security-token:IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==\n"
       "x-amz-target:DynamoDB_20120810.GetItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-security-token;x-amz-target\n"
       "f6fd4389342e791d8f40aba99636419a438daec81aca1f62d2e79c6c52f27e6e",
       "8a51eed541319e84eb9434a144204f68fde53618c82281a081569bbe62ca4e98",
       "98891cc3db32895d5ac9d8f81782c0d5096faa6bbf81188ff81d319f833cba01"},

      {"dynamodb-put-account-endpoint",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "123456789012.ddb.us-west-2.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.PutItem"}},
       "{\"TableName\":\"locks\",\"Item\":{\"name\":{\"S\":\"job-7\"},\"uuid\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"},\"expires\":{\"N\":"
       "\"1700000030000\"}},\"ConditionExpression\":\"attribute_not_exists(#n)"
       "\",\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==",
       {"us-west-2", "dynamodb"},
       1700000000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:123456789012.ddb.us-west-2.amazonaws.com\n"
       "x-amz-date:20231114T221320Z\n"
       "x-amz-security-token:IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==\n"
       "x-amz-target:DynamoDB_20120810.PutItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-security-token;x-amz-target\n"
       "456d78153529f83b7ed6b98fb2e907b72710106aec5fd72f37a46a0dbc058171",
       "1312e355d0941063b3540c9790e955803a53cc12d79f39e0b424d2245fa567b0",
       "06b66152754f00a6a3aeed14bbb912fdf5f3b669c330b374fc09b85e00714f32"},

      {"dynamodb-put-fips-us-west-2",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb-fips.us-west-2.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.PutItem"}},
       "{\"TableName\":\"locks\",\"Item\":{\"name\":{\"S\":\"job-7\"},\"uuid\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"},\"expires\":{\"N\":"
       "\"1700000030000\"}},\"ConditionExpression\":\"attribute_not_exists(#n)"
       "\",\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==",
       {"us-west-2", "dynamodb"},
       1709208000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb-fips.us-west-2.amazonaws.com\n"
       "x-amz-date:20240229T120000Z\n"
       "x-amz-security-token:IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==\n"
       "x-amz-target:DynamoDB_20120810.PutItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-security-token;x-amz-target\n"
       "456d78153529f83b7ed6b98fb2e907b72710106aec5fd72f37a46a0dbc058171",
       "9b1b8e3080b08c4e2f985b70d5ec3428c4ffe01e8e699cc024aa51ec0111d487",
       "7c35369f3221a255bf0a34c41048376aa70a58aabe1227becf0f8441c406c581"},

      {"dynamodb-put-local-port",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "127.0.0.1:8000"},
        {"X-Amz-Target", "DynamoDB_20120810.PutItem"}},
       "{\"TableName\":\"locks\",\"Item\":{\"name\":{\"S\":\"job-7\"},\"uuid\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"},\"expires\":{\"N\":"
       "\"1700000030000\"}},\"ConditionExpression\":\"attribute_not_exists(#n)"
       "\",\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "",
       {"us-east-1", "dynamodb"},
       1700000000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:127.0.0.1:8000\n"
       "x-amz-date:20231114T221320Z\n"
       "x-amz-target:DynamoDB_20120810.PutItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-target\n"
       "456d78153529f83b7ed6b98fb2e907b72710106aec5fd72f37a46a0dbc058171",
       "ed19f4a7f9fd7ed6e38a5d8172e5ec26943952f818bda1774387e132c0cc4d19",
       "11bcbf5a9ddf87c31680ccd66069762d26fe75a4b7ce9f78b7ffff9a62939d42"},

      {"dynamodb-put-us-east-1",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.us-east-1.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.PutItem"}},
       "{\"TableName\":\"locks\",\"Item\":{\"name\":{\"S\":\"job-7\"},\"uuid\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"},\"expires\":{\"N\":"
       "\"1700000030000\"}},\"ConditionExpression\":\"attribute_not_exists(#n)"
       "\",\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "",
       {"us-east-1", "dynamodb"},
       1700000000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb.us-east-1.amazonaws.com\n"
       "x-amz-date:20231114T221320Z\n"
       "x-amz-target:DynamoDB_20120810.PutItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-target\n"
       "456d78153529f83b7ed6b98fb2e907b72710106aec5fd72f37a46a0dbc058171",
       "9be7d50a3f7601a0390020eef288bb7e90a513d113cb1ec4204af87f819bdf89",
       "1f991f68132c7a3eecd28508ae58eb646bcb4898b42cf5d9779adafece4be719"},

      {"dynamodb-update-dualstack",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.ap-south-1.api.aws"},
        {"X-Amz-Target", "DynamoDB_20120810.UpdateItem"}},
       "{\"TableName\":\"locks\",\"Key\":{\"name\":{\"S\":\"job-7\"}},"
       "\"UpdateExpression\":\"SET expires = :e\",\"ConditionExpression\":\"#u "
       "= "
       ":u\",\"ExpressionAttributeNames\":{\"#u\":\"uuid\"},"
       "\"ExpressionAttributeValues\":{\":e\":{\"N\":\"1700000060000\"},\":u\":"
       "{\"S\":\"0f8fad5b-d9cb-469f-a165-70867728950e\"}},"
       "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
       "",
       {"ap-south-1", "dynamodb"},
       1709208000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb.ap-south-1.api.aws\n"
       "x-amz-date:20240229T120000Z\n"
       "x-amz-target:DynamoDB_20120810.UpdateItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-target\n"
       "cd11851c59680e9a1e9ff06dd6bd334376bdb6689a992f821f290aa39e5279cd",
       "e880a1fdf984fae422b396718aacff4fc708ec2f77df2976650481f3eea6ecde",
       "b123324f4ce4cd36a5dff5dd661ef5c3374eae812b9d885b7c0bc2cc73cf8cac"},

      {"dynamodb-update-token-eu-west-1",
       "POST",
       "/",
       "",
       {{"Content-Type", "application/x-amz-json-1.0"},
        {"Host", "dynamodb.eu-west-1.amazonaws.com"},
        {"X-Amz-Target", "DynamoDB_20120810.UpdateItem"}},
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
       1700000000,
       true,
       "POST\n"
       "/\n"
       "\n"
       "content-type:application/x-amz-json-1.0\n"
       "host:dynamodb.eu-west-1.amazonaws.com\n"
       "x-amz-date:20231114T221320Z\n"
       "x-amz-security-token:IQoJb3JpZ2luX2VjEXAMPLE//////////"
       "wEaCXVzLWVhc3QtMSJHMEUCIQDexample+token/with=chars==\n"
       "x-amz-target:DynamoDB_20120810.UpdateItem\n"
       "\n"
       "content-type;host;x-amz-date;x-amz-security-token;x-amz-target\n"
       "cd11851c59680e9a1e9ff06dd6bd334376bdb6689a992f821f290aa39e5279cd",
       "f0fddc917b559d45612a8bec754cb80f6bae984ecc701b1fa87e010eae569d0f",
       "2e6e15b1ca9f1f56adc7bec6a0b34086f1312cd01130220e9d1710a009380cf4"},

  };
  return vectors;
}

#endif  // DDBMUTEX_TESTS_SIGV4_VECTORS_HPP
