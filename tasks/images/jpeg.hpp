#pragma once
/// JPEG files, by libjpeg-turbo (https://libjpeg-turbo.org), whose API 2 is in every distribution.
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>

namespace tasks::images {

/// The picture in a JPEG file: uint8 [height, width, 3], red, green and blue. The same bits on
/// every machine with the same library. Any thread may call it. Throws Error, naming the file, for
/// one that cannot be read, that is not a JPEG or that is damaged: also where the decoder only
/// warns, because what it then gives is half grey.
at::Tensor read_jpeg(const std::filesystem::path& file);

/// As read_jpeg of bytes; `name` is what errors call them.
at::Tensor decode_jpeg(const std::string& bytes, const std::string& name);

/// The bytes of a JPEG file. picture: uint8 [height, width, 3], contiguous; quality: 1 to 100.
std::string encode_jpeg(const at::Tensor& picture, int quality);

/// Writes such a file. Throws Error if it cannot.
void write_jpeg(const std::filesystem::path& file, const at::Tensor& picture, int quality);

}  // namespace tasks::images
