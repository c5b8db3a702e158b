#include "weights/pooling.h"

#include <gtest/gtest.h>

#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"
#include "weights/checkpoint.h"

namespace eider {
namespace {

using test::TempDir;

/// A Hugging Face directory but for its model.
class PoolingFiles : public ::testing::Test {
 protected:
  PoolingFiles() { std::filesystem::create_directory(directory_.file("1_Pooling")); }

  void write_config(std::string_view text) const { directory_.write("1_Pooling/config.json", text); }

  PoolingConfig read() const {
    auto read = read_pooling(directory_.file(""));
    EXPECT_TRUE(read) << read.error().message();
    return read ? *read : PoolingConfig();
  }
  std::string pooling() const {
    const PoolingConfig config = read();
    EXPECT_EQ(config.refusal, "");
    return std::string(pooling_name(config.pooling));
  }
  std::string refusal() const {
    const PoolingConfig config = read();
    EXPECT_EQ(config.pooling, Pooling::kLast);  // the model is as without the file
    return config.refusal;
  }
  /// What reading fails with, the folder's name taken out.
  std::string failure() const {
    const auto read = read_pooling(directory_.file(""));
    if (read) return "";
    const std::string message = read.error().message();
    EXPECT_TRUE(message.starts_with(directory_.file(""))) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message.substr(directory_.file("").size());
  }

  TempDir directory_;
};

TEST_F(PoolingFiles, AreOftenNotThere) {
  EXPECT_EQ(pooling(), "last");
}

// As the library writes them: of bge-en-icl, and with another flag set.
TEST_F(PoolingFiles, NameOneOfThem) {
  for (const auto& [flag, name] : {std::pair("cls_token", "cls"),
                                   {"mean_tokens", "mean"},
                                   {"max_tokens", "max"},
                                   {"mean_sqrt_len_tokens", "mean_sqrt_len"},
                                   {"weightedmean_tokens", "weighted_mean"},
                                   {"lasttoken", "last"}}) {
    std::string text = R"({"word_embedding_dimension": 4096, "pooling_mode_cls_token": false,
                           "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": false,
                           "pooling_mode_mean_sqrt_len_tokens": false,
                           "pooling_mode_weightedmean_tokens": false, "pooling_mode_lasttoken": false,
                           "include_prompt": true})";
    write_config(text);
    EXPECT_EQ(pooling(), "last");  // none
    const std::string key = "pooling_mode_" + std::string(flag) + "\": ";
    text.replace(text.find(key) + key.size(), 5, "true");
    write_config(text);
    EXPECT_EQ(pooling(), name);
  }
  // Old files do without some; the mean is the library's default.
  write_config(R"({"word_embedding_dimension": 1024, "pooling_mode_mean_tokens": true})");
  EXPECT_EQ(pooling(), "mean");
  write_config(R"({"word_embedding_dimension": 1024})");
  EXPECT_EQ(pooling(), "mean");
  // By its name alone.
  for (const auto& [mode, name] : {std::pair(R"("lasttoken")", "last"),
                                   {R"("cls")", "cls"},
                                   {R"(["mean_sqrt_len_tokens"])", "mean_sqrt_len"},
                                   {R"("weightedmean")", "weighted_mean"}}) {
    write_config(R"({"pooling_mode": )" + std::string(mode) + "}");
    EXPECT_EQ(pooling(), name);
  }
}

TEST_F(PoolingFiles, NameWhatIsNotComputed) {
  write_config(R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})");
  EXPECT_EQ(refusal(),
            "1_Pooling/config.json names several poolings at once, "
            "\"pooling_mode_max_tokens, pooling_mode_mean_tokens\", of which one is supported");
  // The mean is on where the file does not say.
  write_config(R"({"pooling_mode_lasttoken": true})");
  EXPECT_EQ(refusal(),
            "1_Pooling/config.json names several poolings at once, "
            "\"pooling_mode_lasttoken, pooling_mode_mean_tokens\", of which one is supported");
  write_config(R"({"pooling_mode_mean_tokens": false, "pooling_mode_median\n": true})");
  EXPECT_EQ(refusal(), "1_Pooling/config.json: the pooling \"pooling_mode_median\\x0a\" is not supported");
  write_config(R"({"pooling_mode": "attention"})");
  EXPECT_EQ(refusal(), "1_Pooling/config.json: the pooling \"attention\" is not supported");
}

TEST_F(PoolingFiles, AreFoundThroughTheListOfModules) {
  write_config(R"({"pooling_mode_mean_tokens": true})");
  const auto list = [&](std::initializer_list<std::pair<const char*, const char*>> modules) {
    std::string text;
    for (const auto& [type, path] : modules)
      text += (text.empty() ? "" : ", ") +
              fmt::format(R"({{"idx": 0, "name": "0", "path": "{}", "type": "{}"}})", path, type);
    directory_.write("modules.json", "[" + text + "]");
  };
  const char* const transformer = "sentence_transformers.models.Transformer";
  const char* const pool = "sentence_transformers.models.Pooling";
  const char* const normalize = "sentence_transformers.models.Normalize";
  list({{transformer, ""}, {pool, "1_Pooling"}, {normalize, "2_Normalize"}});
  EXPECT_EQ(pooling(), "mean");
  list({{transformer, ""}, {pool, "1_Pooling"}});
  EXPECT_EQ(pooling(), "mean");
  std::filesystem::create_directory(directory_.file("other"));
  directory_.write("other/config.json",
                   R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  list({{"sentence_transformers.base.modules.transformer.Transformer", ""}, {pool, "other"}});
  EXPECT_EQ(pooling(), "cls");
  list({{transformer, ""}});
  EXPECT_EQ(pooling(), "last");

  list({{transformer, ""}, {pool, "1_Pooling"}, {"sentence_transformers.models.Dense", "2_Dense"}});
  EXPECT_EQ(refusal(),
            "modules.json: the module \"sentence_transformers.models.Dense\" is not supported there");
  list({{"mine.Transformer", ""}, {pool, "1_Pooling"}});
  EXPECT_EQ(refusal(), "modules.json: the module \"mine.Transformer\" is not supported there");
  list({{transformer, ""}, {pool, "1_Pooling"}, {pool, "other"}});
  EXPECT_EQ(refusal(), fmt::format("modules.json: the module \"{}\" is not supported there", pool));
  list({{transformer, ""}, {pool, "2_Pooling"}});
  EXPECT_EQ(refusal(), "modules.json names a pooling whose file is missing: \"2_Pooling/config.json\"");

  for (const std::string path : {"", ".", "..", "../x", "/etc", "a/b", "1_Pooling/"}) {
    list({{transformer, ""}, {pool, path.c_str()}});
    EXPECT_EQ(failure(), fmt::format("modules.json: \"{}\" is not the name of a folder beside it", path));
  }
}

TEST_F(PoolingFiles, SayWhatIsWrongWithThem) {
  write_config("{");
  EXPECT_EQ(failure().substr(0, 34), "1_Pooling/config.json: parse error");
  write_config("[]");
  EXPECT_EQ(failure(), "1_Pooling/config.json: expected an object");
  write_config(R"({"pooling_mode_cls_token": 1})");
  EXPECT_EQ(failure(), "1_Pooling/config.json: pooling_mode_cls_token: expected true or false, found 1");
  write_config(R"({"pooling_mode": 3})");
  EXPECT_EQ(failure(), "1_Pooling/config.json: pooling_mode: expected a string, found 3");
  write_config(std::string(std::size_t{2} << 20, ' '));
  EXPECT_EQ(failure().substr(0, 22), "1_Pooling/config.json:");
  for (const auto& [text, message] :
       {std::pair("{}", "modules.json: expected an array of modules"),
        {"[1]", "modules.json: module 0: expected an object"},
        {"[{}]", "modules.json: module 0: type: missing"},
        {R"([{"type": "a", "path": 1}])", "modules.json: module 0: path: expected a string, found 1"}}) {
    directory_.write("modules.json", text);
    EXPECT_EQ(failure(), message);
  }
}

TEST(Pooling, OfAGgufFile) {
  const TempDir directory;
  const auto open = [&](const auto& type) {
    test::GgufWriter writer;
    writer.metadata("general.architecture", "qwen3");
    for (const char* key : {"block_count", "context_length", "embedding_length", "attention.head_count"})
      writer.metadata(std::string("qwen3.") + key, std::uint32_t{8});
    writer.metadata("qwen3.pooling_type", type);
    writer.tensor("token_embd.weight", {1, 8}, std::vector<float>(8));
    writer.write(directory.file("m.gguf"));
    return Checkpoint::open(directory.file("m.gguf"));
  };
  const auto pooling = [&](std::uint32_t type) { return open(type).value()->pooling(); };
  for (const auto& [type, expected] :
       {std::pair(0u, Pooling::kLast), {1u, Pooling::kMean}, {2u, Pooling::kCls}, {3u, Pooling::kLast}}) {
    EXPECT_EQ(pooling(type).pooling, expected);
    EXPECT_EQ(pooling(type).refusal, "");
  }
  EXPECT_EQ(pooling(4).refusal,
            "metadata key qwen3.pooling_type: 4 (rank) is not supported: its model scores texts");
  EXPECT_EQ(pooling(5).refusal, "metadata key qwen3.pooling_type: 5 is not supported");
  EXPECT_EQ(pooling(4).pooling, Pooling::kLast);
  EXPECT_FALSE(open(std::string("mean")).ok());
}

}  // namespace
}  // namespace eider
