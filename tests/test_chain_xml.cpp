// The reader of services' XML: what it takes, what it refuses, and that it
// says nothing of what it has read.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/from_xml.hpp"

namespace {

using ddbmutex::sigv4::kMaxXmlBytes;
using ddbmutex::sigv4::XmlDocument;

// The text at a path, "(none)" if there is none, "error" if there is one.
std::string text_at(const std::string& xml, const char* path) {
  const XmlDocument document(xml);
  if (!document.error().empty()) return "error";
  return std::string(document.text(path).value_or("(none)"));
}

std::string text_of(const std::string& content) {
  return text_at("<a>" + content + "</a>", "a");
}

// Which byte the error names, and what it says of it; empty if there is none.
std::string error_of(const std::string& xml) {
  const XmlDocument document(xml);
  BOOST_TEST(document.error().empty() != document.root().empty());
  if (!document.error().empty()) BOOST_TEST(!document.text("a"));
  return document.error();
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string result;
  for (; times != 0; --times) result += text;
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(test_chain_xml)

BOOST_AUTO_TEST_CASE(answer_of_sts_gives_text_by_path) {
  const std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<!-- as it might come -->\n"
      "<R xmlns=\"https://sts.example.com/doc/\" a = '1'>\r\n"
      "  <Result>\n"
      "    <Credentials><Id>AK</Id>\n<Secret>a/b+c=</Secret></Credentials>\n"
      "    <User ><Id>you</Id></User >\n"
      "  </Result>\n"
      "  <Empty/><Hollow></Hollow>\n"
      "</R>\n<?done now?>\n";
  BOOST_TEST(XmlDocument(xml).root() == "R");
  BOOST_TEST(text_at(xml, "R/Result/Credentials/Id") == "AK");
  BOOST_TEST(text_at(xml, "R/Result/Credentials/Secret") == "a/b+c=");
  BOOST_TEST(text_at(xml, "R/Result/User/Id") == "you");
  BOOST_TEST(text_at(xml, "R/Empty") == "");
  BOOST_TEST(text_at(xml, "R/Hollow") == "");
}

BOOST_AUTO_TEST_CASE(path_that_leads_nowhere_gives_nothing) {
  const std::string xml = "<R><A><B>b</B></A><C>c</C></R>";
  for (const char* path : {"", "/", "R/", "R//C", "r/C", "C", "R/B", "R/A/C",
                           "R/C/B", "R/C/", "/R/C", "R/c", "R/A/B/b"}) {
    BOOST_TEST(text_at(xml, path) == "(none)", path);
  }
}

BOOST_AUTO_TEST_CASE(element_with_elements_has_no_text) {
  BOOST_TEST(text_at("<R><A> <B/> </A></R>", "R/A") == "(none)");
  BOOST_TEST(text_at("<R><A> <B/> </A></R>", "R") == "(none)");
}

BOOST_AUTO_TEST_CASE(element_that_is_there_twice_gives_nothing) {
  BOOST_TEST(text_at("<R><A>1</A><A>2</A></R>", "R/A") == "(none)");
  BOOST_TEST(text_at("<R><A><B>1</B></A><A/></R>", "R/A/B") == "(none)");
  BOOST_TEST(text_at("<R><A><B>1</B></A><C><B/></C></R>", "R/A/B") == "1");
}

BOOST_AUTO_TEST_CASE(name_is_taken_with_its_prefix) {
  const std::string xml = "<s:R xmlns:s='x'><s:A>1</s:A></s:R>";
  BOOST_TEST(text_at(xml, "s:R/s:A") == "1");
  BOOST_TEST(text_at(xml, "R/A") == "(none)");
}

BOOST_AUTO_TEST_CASE(reference_stands_for_its_character) {
  BOOST_TEST(text_of("&lt;&gt;&amp;&quot;&apos;") == "<>&\"'");
  BOOST_TEST(text_of("&#65;&#x42;&#x63;&#9;") == "ABc\t");
  BOOST_TEST(text_of("&#xe9;") == "\xc3\xa9");
  BOOST_TEST(text_of("&#x20AC;") == "\xe2\x82\xac");
  BOOST_TEST(text_of("&#x1F600;") == "\xf0\x9f\x98\x80");
  BOOST_TEST(text_of("&#x10fffd;") == "\xf4\x8f\xbf\xbd");
  BOOST_TEST(text_of("&amp;lt;") == "&lt;");
}

BOOST_AUTO_TEST_CASE(reference_to_anything_else_is_an_error) {
  for (const char* reference :
       {"&nbsp;",       "&AMP;",    "&;",       "&",          "&amp",
        "& amp;",       "&#;",      "&#x;",     "&#0;",       "&#x1f;",
        "&#xd800;",     "&#xdfff;", "&#xfffe;", "&#x110000;", "&#99999999;",
        "&#-1;",        "&#1a;",    "&#xg;",    "&#X41;",     "&#+65;",
        "&#4294967361;"}) {
    BOOST_TEST(text_of(reference) == "error", reference);
    const std::string value = std::string("<a b='") + reference + "'/>";
    BOOST_TEST(error_of(value) != "", value);
  }
}

BOOST_AUTO_TEST_CASE(comment_and_instruction_leave_no_trace) {
  BOOST_TEST(text_of("o<!-- <b> & -->n<?x <b> & ?>e") == "one");
  BOOST_TEST(text_of("<?x?>1<!---->") == "1");
}

BOOST_AUTO_TEST_CASE(cdata_is_text_as_it_stands) {
  BOOST_TEST(text_of("a<![CDATA[<b>&amp;]]]]><![CDATA[>]]>c") ==
             "a<b>&amp;]]>c");
  BOOST_TEST(text_of("<![CDATA[]]>") == "");
}

BOOST_AUTO_TEST_CASE(attribute_is_passed_over) {
  BOOST_TEST(text_at("<a x=\"1>'\" y='/>\"&lt;'\n z\t=\r'' >t</a>", "a") ==
             "t");
  BOOST_TEST(text_at("<R><a x='/'/><b>t</b></R>", "R/b") == "t");
}

BOOST_AUTO_TEST_CASE(bytes_beyond_ascii_are_taken_as_they_are) {
  BOOST_TEST(text_of("\xc3\xa9\xff") == "\xc3\xa9\xff");
  BOOST_TEST(text_at("\xef\xbb\xbf<\xc3\xa9>1</\xc3\xa9>", "\xc3\xa9") == "1");
}

BOOST_AUTO_TEST_CASE(document_type_is_refused) {
  const std::string bomb =
      "<!DOCTYPE a [<!ENTITY b \"lol\"><!ENTITY c \"&b;&b;\">]>";
  BOOST_TEST(error_of(bomb + "<a>&c;</a>") ==
             "byte 0: a document type or the like");
  BOOST_TEST(error_of("<!DOCTYPE html><a/>") != "");
  BOOST_TEST(error_of("<!doctype html><a/>") != "");
  BOOST_TEST(error_of("<a><!ENTITY b ''></a>") != "");
}

BOOST_AUTO_TEST_CASE(what_is_not_well_formed_is_refused) {
  const std::vector<std::string> bad = {"",
                                        " ",
                                        "a",
                                        "<",
                                        "<a",
                                        "<a ",
                                        "<a/",
                                        "<a>",
                                        "<a></a",
                                        "<a></b>",
                                        "<a><b></a></b>",
                                        "</a>",
                                        "<a></a></a>",
                                        "<a/><b/>",
                                        "<a/><a/>",
                                        "<a/>x",
                                        "x<a/>",
                                        "&amp;<a/>",
                                        "<a/>&amp;",
                                        "< a/>",
                                        "<a / >",
                                        "<1/>",
                                        "<-a/>",
                                        "<a></ a>",
                                        "<a></a b='c'>",
                                        "<a b/>",
                                        "<a b=/>",
                                        "<a b=c/>",
                                        "<a b='c/>",
                                        "<a b='<'/>",
                                        "<a b='c'd='e'/>",
                                        "<a b='c' b='d'/>",
                                        "<a ='c'/>",
                                        "<a b=\"c'/>",
                                        "<a>]]></a>",
                                        "<![CDATA[x]]><a/>",
                                        "<a/><![CDATA[]]>",
                                        "<a><![CDATA[x]]</a>",
                                        "<a><![cdata[x]]></a>",
                                        "<a><!-- -- --></a>",
                                        "<a><!--->x</a>",
                                        "<!-- <a/>",
                                        "<a><!- x -></a>",
                                        "<a><?x</a>",
                                        "<a><? x?></a>",
                                        "<a><? ?></a>",
                                        "<a/><?xml version='1.0'?>",
                                        "<?XML version='1.0'?><a/>",
                                        " <?xml version='1.0'?><a/>",
                                        "<?xml?><a/>",
                                        "<?xml version='1.0'><a/>",
                                        "<a>b<c/></a>",
                                        "<a><c/>b</a>",
                                        "<a><c/>&amp;</a>",
                                        "<a><c/><![CDATA[b]]></a>"};
  for (const std::string& xml : bad) BOOST_TEST(error_of(xml) != "", xml);
}

BOOST_AUTO_TEST_CASE(control_character_is_refused_wherever_it_is) {
  for (char c = 0; c < ' '; ++c) {
    const bool blank = c == '\t' || c == '\n' || c == '\r';
    const std::string byte(1, c);
    for (const std::string& xml :
         {"<a>" + byte + "</a>", "<a b='" + byte + "'/>",
          "<a><!--" + byte + "--></a>", "<a><![CDATA[" + byte + "]]></a>",
          "<a><?b " + byte + "?></a>", "<a/>" + byte}) {
      BOOST_TEST(error_of(xml).empty() == blank, int{c});
    }
  }
}

BOOST_AUTO_TEST_CASE(error_names_the_byte_and_nothing_that_stands_there) {
  BOOST_TEST(error_of("<a>s3cret</b>") ==
             "byte 12: a tag closes what is not open");
  for (const char* xml : {"<a>s3cret", "<a>&s3cret;</a>", "<s3cret>", "s3cret",
                          "<a>x<s3cret/></a>", "<a s3cret/>"}) {
    BOOST_TEST(error_of(xml) != "");
    BOOST_TEST(error_of(xml).find("s3cret") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(document_may_be_of_64_kib_and_no_longer) {
  const std::string text(kMaxXmlBytes - 7, 'x');
  BOOST_TEST((text_of(text) == text));
  BOOST_TEST(error_of("<a>" + text + "y</a>") ==
             "byte 0: the document is too long");
}

BOOST_AUTO_TEST_CASE(depth_costs_no_stack) {
  constexpr std::size_t kDepth = kMaxXmlBytes / 7;
  const std::string xml =
      repeated("<a>", kDepth) + "t" + repeated("</a>", kDepth);
  const std::string path = repeated("a/", kDepth - 1) + "a";
  BOOST_TEST(text_at(xml, path.c_str()) == "t");
  BOOST_TEST(error_of(repeated("<a>", kMaxXmlBytes / 3)) != "");
}

BOOST_AUTO_TEST_CASE(attributes_without_end_are_refused) {
  std::string some, many;
  for (int i = 0; i < 33; ++i) {
    const std::string name(1,
                           static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26));
    many += " " + name + "=''";
    if (i < 32) some = many;
  }
  BOOST_TEST(error_of("<a" + some + "/>") == "");
  BOOST_TEST(error_of("<a" + many + "/>") != "");
}

BOOST_AUTO_TEST_CASE(document_that_moved_still_gives_its_text) {
  XmlDocument first("<a>t</a>");
  const XmlDocument second = std::move(first);
  BOOST_TEST(second.text("a").value_or("(none)") == "t");
}

BOOST_AUTO_TEST_SUITE_END()
