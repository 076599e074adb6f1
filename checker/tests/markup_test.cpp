#include "support/markup.hpp"

#include <gmock/gmock.h>

namespace checker::markup {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kHostile = "<a href='x'>&\"\x01 \x1b[31m";

std::string html_of(std::string_view text) {
  pugi::xml_document body;
  add(body, "p", {{"title", std::string(text)}}, text);
  return to_html(body);
}

TEST(Markup, KeepsTextText) {
  EXPECT_EQ(html_of("2 < 3 & \"4\""),
            "<p title=\"2 &lt; 3 &amp; &quot;4&quot;\">2 &lt; 3 &amp; \"4\"</p>");
  pugi::xml_document read;
  ASSERT_TRUE(read.load_string(html_of(kHostile).c_str(), pugi::parse_default));
  EXPECT_STREQ(read.child("p").text().get(), "<a href='x'>&\"   [31m");
  EXPECT_STREQ(read.child("p").attribute("title").value(), "<a href='x'>&\"   [31m");
}

TEST(Markup, WritesNoControlCharacterButLineEnds) {
  EXPECT_EQ(html_of("a\x01\tb\n").substr(html_of("a\x01\tb\n").find('>')), ">a  b\n</p>");
  EXPECT_THAT(html_of(std::string_view("a\0b", 3)), HasSubstr(">a b<"));
}

// A browser takes <i/> for an element that goes on, and shows blanks between words.
TEST(Markup, HtmlClosesEveryElementAndAddsNoBlank) {
  pugi::xml_document body;
  auto line = add(body, "p", "one");
  add(line, "i");
  add_text(line, "two");
  EXPECT_EQ(to_html(body), "<p>one<i></i>two</p>");
}

TEST(Markup, TablesHaveHeadingsInBothDirections) {
  pugi::xml_document body;
  auto table = add_table(body, "grid", {"rank", "loss"});
  add_row(table, "0", {"1.5"});
  EXPECT_EQ(to_html(body),
            "<table class=\"grid\"><thead><tr><th>rank</th><th>loss</th></tr></thead>"
            "<tbody><tr><th>0</th><td>1.5</td></tr></tbody></table>");
}

TEST(Markup, APageNeedsNoNetworkAndItsScriptIsLeftAsItIs) {
  pugi::xml_document body;
  add(body, "h1", "1 < 2");
  const auto page = to_page("<title>", "p > b {}", body, "if (1 < 2 && 3 > 2) go();");
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  EXPECT_THAT(page, AllOf(HasSubstr("<title>&lt;title&gt;</title>"), HasSubstr("p > b {}"),
                          HasSubstr("<h1>1 &lt; 2</h1>"), HasSubstr("if (1 < 2 && 3 > 2) go();"),
                          HasSubstr("default-src 'none'"), Not(HasSubstr("src="))));
}

TEST(Markup, APictureSaysWhatItShows) {
  pugi::xml_document picture;
  auto svg = begin_picture(picture, 20.4, 10, "Steps & stairs", "text {}");
  add(svg, "rect", {{"x", "1"}});
  EXPECT_EQ(to_svg(picture),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 10\" role=\"img\" "
            "aria-label=\"Steps &amp; stairs\">\n"
            "  <style>text {}</style>\n"
            "  <rect x=\"1\" />\n"
            "</svg>\n");
}

}  // namespace
}  // namespace checker::markup
