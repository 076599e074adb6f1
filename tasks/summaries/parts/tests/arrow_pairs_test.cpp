// Pairs in Arrow's streams and files, whole and damaged.
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>
#include <gmock/gmock.h>

#include "../functions.hpp"
#include "damage.hpp"

namespace tasks::summaries {
namespace {

using testing::HasSubstr;

constexpr int kRows = 10, kBatch = 4;
enum class Form { stream, file };

std::string document(int row) {
  return "Document " + std::to_string(row) + std::string(static_cast<size_t>(60 + row), '.');
}
std::string summary(int row) { return "\xc3\xa9 " + std::to_string(row * row); }

template <class T>
T value(arrow::Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return std::move(result).ValueUnsafe();
}
void check(const arrow::Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); }

template <class Builder>
std::shared_ptr<arrow::Array> column(int from, std::string (*text)(int)) {
  Builder builder;
  for (int row = from; row < std::min(from + kBatch, kRows); ++row)
    check(builder.Append(text(row)));
  return value(builder.Finish());
}

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

// As Hugging Face's datasets writes XSum, whose third column is of no interest.
template <class Builder = arrow::StringBuilder>
Batches good_batches() {
  Batches batches;
  for (int row = 0; row < kRows; row += kBatch) {
    const auto documents = column<Builder>(row, document);
    const auto summaries = column<arrow::StringBuilder>(row, summary);
    const auto schema = arrow::schema({arrow::field("id", summaries->type()),
                                       arrow::field("document", documents->type()),
                                       arrow::field("summary", summaries->type())});
    batches.push_back(
        arrow::RecordBatch::Make(schema, documents->length(), {summaries, documents, summaries}));
  }
  return batches;
}

std::string bytes_of(const Batches& batches, Form form) {
  const auto stream = value(arrow::io::BufferOutputStream::Create());
  const auto& schema = batches.at(0)->schema();
  const auto writer = value(form == Form::file ? arrow::ipc::MakeFileWriter(stream, schema)
                                               : arrow::ipc::MakeStreamWriter(stream, schema));
  for (const auto& batch : batches) check(writer->WriteRecordBatch(*batch));
  check(writer->Close());
  return value(stream->Finish())->ToString();
}

class ArrowPairs : public testing::Test {
 protected:
  std::vector<Pair> read(const std::string& bytes) const {
    std::vector<Pair> pairs;
    worldsize_arrow_pairs(folder_.write("xsum-train.arrow", bytes),
                          [&](const Pair& pair) { pairs.push_back(pair); });
    return pairs;
  }
  std::vector<std::string> documents(const std::string& bytes) const {
    std::vector<std::string> documents;
    for (const auto& pair : read(bytes)) documents.push_back(pair.document);
    return documents;
  }
  std::string error(const std::string& bytes) const {
    return error_of_bytes(folder_, bytes, [](const std::filesystem::path& file) {
      size_t letters = 0;
      worldsize_arrow_pairs(file, [&](const Pair& pair) {
        for (const char letter : pair.document + pair.summary) letters += letter != '\0' ? 1 : 0;
      });
    });
  }
  // One row: a document and a summary in the arrays given.
  std::string error_of_row(const std::string& first, const std::shared_ptr<arrow::Array>& documents,
                           const std::shared_ptr<arrow::Array>& summaries) const {
    const auto schema = arrow::schema(
        {arrow::field(first, documents->type()), arrow::field("summary", summaries->type())});
    return error(
        bytes_of({arrow::RecordBatch::Make(schema, documents->length(), {documents, summaries})},
                 Form::stream));
  }

  TemporaryFolder folder_;
  std::mt19937_64 random_{3};
};

TEST_F(ArrowPairs, AreReadInOrder) {
  for (const auto form : {Form::stream, Form::file}) {
    for (const auto& batches : {good_batches(), good_batches<arrow::LargeStringBuilder>()}) {
      const auto pairs = read(bytes_of(batches, form));
      ASSERT_EQ(pairs.size(), size_t{kRows});
      for (int row = 0; row < kRows; ++row) {
        EXPECT_EQ(pairs[static_cast<size_t>(row)].document, document(row));
        EXPECT_EQ(pairs[static_cast<size_t>(row)].summary, summary(row));
      }
    }
  }
}

TEST_F(ArrowPairs, OfOtherColumnsAreRefused) {
  const auto text = column<arrow::StringBuilder>(8, summary);
  arrow::Int32Builder numbers;
  check(numbers.AppendValues({1, 2}));
  const auto number = value(numbers.Finish());
  arrow::StringBuilder nothing, broken;
  check(nothing.Append("a"));
  check(nothing.AppendNull());
  const auto null = value(nothing.Finish());
  check(broken.AppendValues(std::vector<std::string>{"a", "\xc3"}));
  EXPECT_EQ(error_of_row("document", text, text), "");
  EXPECT_THAT(error_of_row("article", text, text), HasSubstr("no column \"document\""));
  EXPECT_THAT(error_of_row("summary", text, text), HasSubstr("no column \"document\""));
  EXPECT_THAT(error_of_row("document", number, text), HasSubstr("\"document\" of type int32"));
  EXPECT_THAT(error_of_row("document", text, null), HasSubstr("without a document or a summary"));
  EXPECT_THAT(error_of_row("document", text, value(broken.Finish())), HasSubstr("UTF8"));
}

TEST_F(ArrowPairs, OfNoRowsOrNoFileAreRefused) {
  const auto none = good_batches().at(0)->Slice(0, 0);
  EXPECT_THAT(error(bytes_of({none}, Form::stream)), HasSubstr("no rows"));
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_THAT(error("{\"document\": \"a\", \"summary\": \"b\"}\n"), HasSubstr("as Arrow"));
  EXPECT_THROW(worldsize_arrow_pairs(folder_.path(), {}), std::runtime_error);
  EXPECT_THROW(worldsize_arrow_pairs(folder_.path() / "none", {}), std::runtime_error);
}

TEST_F(ArrowPairs, ThatAreCutAreAlwaysNamed) {
  for (const auto form : {Form::stream, Form::file}) {
    const auto whole = bytes_of(good_batches(), form);
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_NE(error(whole.substr(0, length)), "") << length << " of " << whole.size();
    }
    EXPECT_THAT(error(whole + "x"),
                HasSubstr(form == Form::stream ? "continues after the end" : "Arrow"));
    EXPECT_NE(error(whole + whole), "");
    EXPECT_EQ(error(whole), "");
  }
}

// A message is 0xffffffff, the length of its header, the header and the body.
// What only makes a header longer by the padding that follows it changes nothing.
TEST_F(ArrowPairs, WithAnotherLengthAreNamedOrTheSame) {
  for (const auto form : {Form::stream, Form::file}) {
    const auto whole = bytes_of(good_batches(), form);
    size_t messages = 0;
    int same = 0;
    for (auto at = whole.find("\xff\xff\xff\xff"); at != std::string::npos;
         at = whole.find("\xff\xff\xff\xff", at + 4)) {
      ++messages;
      for (size_t byte = 0; byte < 8; ++byte) {
        for (const int change : {1, 2, 4, 8, 128}) {
          auto other = whole;
          other[at + byte] = static_cast<char>(other[at + byte] ^ change);
          if (error(other).empty()) {
            ++same;
            EXPECT_EQ(documents(other), documents(whole)) << byte << " of message " << messages;
          }
        }
      }
    }
    EXPECT_EQ(messages, 5U);  // the schema, three batches and the end
    EXPECT_LE(same, 2);
  }
}

TEST_F(ArrowPairs, WithAnotherFooterAreAlwaysNamed) {
  const auto whole = bytes_of(good_batches(), Form::file);
  for (size_t byte = whole.size() - 10; byte < whole.size(); ++byte) {
    for (int change = 1; change < 256; change *= 2) {
      auto other = whole;
      other[byte] = static_cast<char>(other[byte] ^ change);
      EXPECT_NE(error(other), "") << byte << " of " << whole.size();
    }
  }
  // That of a file of fewer rows.
  auto batches = good_batches();
  batches.pop_back();
  const auto shorter = bytes_of(batches, Form::file);
  const auto footer = [](const std::string& bytes) {
    return bytes.rfind(std::string("\xff\xff\xff\xff\0\0\0\0", 8)) + 8;
  };
  EXPECT_THAT(error(whole.substr(0, footer(whole)) + shorter.substr(footer(shorter))),
              HasSubstr("footer"));
}

// A header names its batch's rows four times: in all, and for each column.
TEST_F(ArrowPairs, OfFewerRowsThanThereIsTextAreNamed) {
  auto bytes = bytes_of(good_batches(), Form::stream);
  const std::string four{4, 0, 0, 0, 0, 0, 0, 0};
  size_t at = bytes.find("\xff\xff\xff\xff", 4);  // the first batch
  for (int i = 0; i < 4; ++i) {
    at = bytes.find(four, at);
    ASSERT_NE(at, std::string::npos);
    bytes[at] = 3;
  }
  EXPECT_THAT(error(bytes), HasSubstr("text that belongs to no row"));
}

// Offsets of rows go up, and end where the letters do.
TEST_F(ArrowPairs, WithOtherOffsetsAreAlwaysNamed) {
  const auto whole = bytes_of(good_batches(), Form::stream);
  const auto size = static_cast<char>(document(0).size());
  const std::string first{0, 0, 0, 0, size, 0, 0, 0};
  const auto at = whole.find(first);
  ASSERT_NE(at, std::string::npos);
  for (int row = 0; row <= kBatch; ++row) {
    for (const auto& bytes : {std::string("\xff\xff\xff\xff"), std::string("\0\0\0\x7f", 4),
                              std::string("\1\0\0\0", 4)}) {
      if (row < 2 && bytes[0] == 1) continue;  // a shorter first row, as far as anybody can tell
      auto other = whole;
      other.replace(at + 4 * static_cast<size_t>(row), 4, bytes);
      EXPECT_NE(error(other), "") << row;
    }
  }
}

TEST_F(ArrowPairs, ThatAreDamagedAreReadOrNamed) {
  int refused = 0, tried = 0;
  for (const auto form : {Form::stream, Form::file}) {
    const auto whole = bytes_of(good_batches(), form);
    for (int i = 0; i < 1000; ++i, ++tried) {
      const auto reach = i % 2 == 0 ? size_t{400} : whole.size();
      if (!error(damaged(whole, random_, 0, reach)).empty()) ++refused;
    }
  }
  EXPECT_EQ(tried, 2000);
  EXPECT_GT(refused, 800);
}

}  // namespace
}  // namespace tasks::summaries
