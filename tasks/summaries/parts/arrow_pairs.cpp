// Pairs in Arrow's files: see parts.hpp.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/api.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "functions.hpp"

namespace tasks::summaries {
namespace {

// Both end a stream: a length of 0 where the next message would be. Arrow's own reader takes a
// stream without it for whole, and so one that was cut between two messages.
constexpr std::string_view kStreamEnd("\xff\xff\xff\xff\0\0\0\0", 8);
// At a file's start, padded to 8 bytes, and at its end.
constexpr std::string_view kMagic = "ARROW1";
constexpr int64_t kPaddedMagic = 8;
// Arrow's buffers end at multiples of this at most.
constexpr int64_t kPadding = 64;

class ArrowPairs {
 public:
  explicit ArrowPairs(std::filesystem::path file) : file_(std::move(file)) {
    if (!std::filesystem::is_regular_file(file_)) fail("is not a file");
    // What maps an empty file fails with a riddle.
    if (std::filesystem::file_size(file_) == 0) fail("is empty");
    bytes_ = need(arrow::io::MemoryMappedFile::Open(file_.string(), arrow::io::FileMode::READ));
    size_ = need(bytes_->GetSize());
  }

  void read(const std::function<void(const Pair&)>& take) {
    // A file is a stream between a magic word and a footer.
    const bool has_footer = text_at(0, kMagic.size()) == kMagic;
    check(bytes_->Seek(has_footer ? kPaddedMagic : 0));
    const auto reader = need(arrow::ipc::RecordBatchStreamReader::Open(bytes_, options()));
    const int document = column_of(*reader->schema(), "document");
    const int summary = column_of(*reader->schema(), "summary");
    int batches = 0;
    while (const auto batch = need(reader->Next())) {
      take_batch(*batch->column(document), *batch->column(summary), take);
      ++batches;
    }
    const auto end = need(bytes_->Tell());
    if (text_at(end - static_cast<int64_t>(kStreamEnd.size()), kStreamEnd.size()) != kStreamEnd) {
      fail("is cut off: the end of its stream is missing");
    }
    if (has_footer) {
      check_footer(end, batches);
    } else if (end != size_) {
      fail("continues after the end of its stream");
    }
    if (rows_ == 0) fail("has no rows");
  }

 private:
  static arrow::ipc::IpcReadOptions options() {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    // Lengths of a damaged file may put numbers where a processor would not read them.
    options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
    return options;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(
        file_.string() + ": " + what +
        ". Fix: copy the file again, or write it again with Hugging Face's datasets. It must be an "
        "Arrow stream or file with the string columns \"document\" and \"summary\".");
  }
  void check(const arrow::Status& status) const {
    if (!status.ok()) fail("cannot be read as Arrow (" + status.message().substr(0, 200) + ")");
  }
  template <class T>
  T need(arrow::Result<T> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }

  std::string text_at(int64_t from, size_t length) const {
    if (from < 0 || from + static_cast<int64_t>(length) > size_) return {};
    return need(bytes_->ReadAt(from, static_cast<int64_t>(length)))->ToString();
  }

  int column_of(const arrow::Schema& schema, const std::string& name) const {
    const int column = schema.GetFieldIndex(name);
    if (column < 0) fail("has no column \"" + name + "\", or two");
    const auto type = schema.field(column)->type();
    if (type->id() != arrow::Type::STRING && type->id() != arrow::Type::LARGE_STRING) {
      fail("has a column \"" + name + "\" of type " + type->ToString() + ", which is not a string");
    }
    return column;
  }

  // A footer that belongs to the stream before it: as many batches, and as long as the rest.
  void check_footer(int64_t end, int batches) const {
    const auto reader = need(arrow::ipc::RecordBatchFileReader::Open(bytes_.get(), options()));
    const auto tail = static_cast<int64_t>(kMagic.size() + sizeof(int32_t));
    const auto length = text_at(size_ - tail, sizeof(int32_t));
    int64_t footer = 0;
    for (size_t i = 0; i < length.size(); ++i) {
      footer |= int64_t{static_cast<uint8_t>(length[i])} << (8 * i);
    }
    if (end + footer + tail != size_ || reader->num_record_batches() != batches) {
      fail("has a footer that does not match its contents");
    }
  }

  void take_batch(const arrow::Array& documents, const arrow::Array& summaries,
                  const std::function<void(const Pair&)>& take) {
    for (const auto* column : {&documents, &summaries}) {
      check(column->ValidateFull());  // offsets and UTF-8
      if (column->null_count() != 0) fail("has a row without a document or a summary");
    }
    const auto read_documents = reader_of(documents);
    const auto read_summaries = reader_of(summaries);
    for (int64_t i = 0; i < documents.length(); ++i) {
      take({std::string(read_documents(i)), std::string(read_summaries(i))});
      ++rows_;
    }
  }

  std::function<std::string_view(int64_t)> reader_of(const arrow::Array& column) const {
    if (column.type_id() == arrow::Type::STRING) {
      return reader_of_type<arrow::StringArray>(column);
    }
    return reader_of_type<arrow::LargeStringArray>(column);
  }
  template <class Array>
  std::function<std::string_view(int64_t)> reader_of_type(const arrow::Array& column) const {
    const auto& strings = static_cast<const Array&>(column);
    // A batch that says fewer rows than were written would lose the others in silence.
    const int64_t letters = strings.value_data() ? strings.value_data()->size() : 0;
    if (letters - strings.value_offset(strings.length()) >= kPadding) {
      fail("has text that belongs to no row");
    }
    return [&strings](int64_t row) { return strings.GetView(row); };
  }

  std::filesystem::path file_;
  std::shared_ptr<arrow::io::MemoryMappedFile> bytes_;
  int64_t size_ = 0, rows_ = 0;
};

}  // namespace
}  // namespace tasks::summaries

void worldsize_arrow_pairs(const std::filesystem::path& file,
                           const std::function<void(const tasks::summaries::Pair&)>& take) {
  tasks::summaries::ArrowPairs(file).read(take);
}
