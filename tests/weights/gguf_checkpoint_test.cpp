// Checkpoints from GGUF files made here: names, transforms, configuration, refusals.
#include <gtest/gtest.h>

#include "tests/support/gguf_writer.h"
#include "tests/support/json_printer.h"
#include "weights/checkpoint.h"

namespace eider {
namespace {

using test::bytes_of;
using test::GgufWriter;
using test::TempDir;

constexpr std::int64_t kHidden = 8;

/// begin, begin + 1, ...
std::vector<float> counting(std::int64_t count, float begin = 0) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = begin + static_cast<float>(i);
  return values;
}

/// Metadata and embeddings of a model with two layers, 4 query and 2 key-value heads of 4.
GgufWriter model(const std::string& architecture) {
  GgufWriter writer;
  writer.metadata("general.architecture", architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  writer.metadata(key("block_count"), std::uint32_t{2}).metadata(key("context_length"), std::uint32_t{64});
  writer.metadata(key("embedding_length"), static_cast<std::uint32_t>(kHidden));
  writer.metadata(key("feed_forward_length"), std::uint32_t{6});
  writer.metadata(key("attention.head_count"), std::uint32_t{4});
  writer.metadata(key("attention.head_count_kv"), std::uint32_t{2});
  writer.metadata(key("attention.key_length"), std::uint32_t{4});
  writer.metadata(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  writer.tensor("token_embd.weight", {3, kHidden}, counting(3 * kHidden));
  return writer;
}

Result<std::shared_ptr<const Checkpoint>> open(const GgufWriter& writer) {
  const TempDir directory;  // a mapping outlives its file's name
  writer.write(directory.file("m.gguf"));
  auto checkpoint = Checkpoint::open(directory.file("m.gguf"));
  if (checkpoint) return checkpoint;
  // Tests compare messages without the path that they all begin with.
  return Error(checkpoint.error().message().substr(directory.file("m.gguf: ").size()));
}

std::vector<float> floats(const Checkpoint& checkpoint, const std::string& name, const Shape& shape) {
  const auto tensor = checkpoint.get(name, shape);
  EXPECT_TRUE(tensor) << tensor.error().message();
  if (!tensor) return {};
  EXPECT_EQ(tensor->format, Format::kF32);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
  return values;
}

/// The published rows of a matrix whose file rows are `rows`: row 2i + s of a head becomes row s * 2 + i
/// (heads of 4).
std::vector<float> unpermuted(const std::vector<float>& rows, std::int64_t columns) {
  std::vector<float> published;
  for (std::size_t head = 0; head < rows.size() / static_cast<std::size_t>(4 * columns); ++head) {
    for (const std::size_t row : {0, 2, 1, 3}) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>((head * 4 + row)) * columns;
      published.insert(published.end(), begin, begin + columns);
    }
  }
  return published;
}

TEST(GgufCheckpoint, LlamaNamesAndPermutedRows) {
  const auto query = counting(16 * kHidden);
  const auto key = counting(8 * kHidden, 1000);
  const auto key_bias = counting(8, 2000);
  GgufWriter writer = model("llama");
  writer.tensor("output.weight", {3, kHidden}, counting(3 * kHidden, 500));
  writer.tensor("output_norm.weight", {kHidden}, counting(kHidden));
  writer.tensor("rope_freqs.weight", {2}, {1, 8});
  writer.tensor("blk.1.attn_q.weight", {16, kHidden}, query).tensor("blk.1.attn_k.weight", {8, kHidden}, key);
  writer.tensor("blk.1.attn_k.bias", {8}, key_bias).tensor("blk.1.attn_v.weight", {8, kHidden}, key);
  writer.tensor("blk.1.attn_output.weight", {kHidden, 16}, query);
  writer.tensor("blk.1.ffn_norm.weight", {kHidden}, counting(kHidden));
  writer.tensor("blk.1.ffn_down.weight", {kHidden, 6}, counting(6 * kHidden));
  writer.tensor("blk.1.attn_rot_embd.weight", {2}, {1, 1});
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  const Checkpoint& checkpoint = **opened;

  const std::string attention = "model.layers.1.self_attn.";
  EXPECT_EQ(floats(checkpoint, attention + "q_proj.weight", {16, kHidden}), unpermuted(query, kHidden));
  EXPECT_EQ(floats(checkpoint, attention + "k_proj.weight", {8, kHidden}), unpermuted(key, kHidden));
  EXPECT_EQ(floats(checkpoint, attention + "k_proj.bias", {8}), unpermuted(key_bias, 1));
  EXPECT_EQ(floats(checkpoint, attention + "v_proj.weight", {8, kHidden}), key);
  EXPECT_EQ(floats(checkpoint, attention + "o_proj.weight", {kHidden, 16}), query);
  EXPECT_EQ(floats(checkpoint, "model.layers.1.post_attention_layernorm.weight", {kHidden}),
            counting(kHidden));
  EXPECT_EQ(floats(checkpoint, "model.layers.1.mlp.down_proj.weight", {kHidden, 6}), counting(6 * kHidden));
  EXPECT_EQ(floats(checkpoint, "lm_head.weight", {3, kHidden}), counting(3 * kHidden, 500));
  EXPECT_EQ(floats(checkpoint, "rope_freqs.weight", {2}), (std::vector<float>{1, 8}));
  EXPECT_EQ(checkpoint.tensors().size(), 11u) << "attn_rot_embd is ignored";
  EXPECT_EQ(*checkpoint.config().boolean("tie_word_embeddings"), false);
  EXPECT_EQ(*checkpoint.config().integer("vocab_size"), 3);
}

TEST(GgufCheckpoint, RowsAreCopiedWhenAskedFor) {
  const auto query = counting(16 * kHidden), key = counting(8 * kHidden, 1000);
  const TempDir directory;
  GgufWriter writer = model("llama");
  writer.tensor("blk.0.attn_q.weight", {16, kHidden}, query).tensor("blk.0.attn_k.weight", {8, kHidden}, key);
  writer.write(directory.file("m.gguf"));
  const auto opened = Checkpoint::open(directory.file("m.gguf"), RowCopies::kWhenAsked);
  ASSERT_TRUE(opened) << opened.error().message();
  const Checkpoint& checkpoint = **opened;
  const std::string q = "model.layers.0.self_attn.q_proj.weight",
                    k = "model.layers.0.self_attn.k_proj.weight";
  EXPECT_EQ(floats(checkpoint, q, {16, kHidden}), std::vector<float>(query.size()));
  checkpoint.make_ready(*checkpoint.find(q));
  EXPECT_EQ(floats(checkpoint, q, {16, kHidden}), unpermuted(query, kHidden));
  EXPECT_EQ(floats(checkpoint, k, {8, kHidden}), std::vector<float>(key.size()));
  checkpoint.preload([](std::int64_t, std::int64_t) { return false; });
  EXPECT_EQ(floats(checkpoint, k, {8, kHidden}), unpermuted(key, kHidden));
}

TEST(GgufCheckpoint, PermutesRowsOfQuantisedMatrices) {
  std::string rows;
  for (char row = 0; row < 16; ++row) rows += std::string(18, row);  // one Q4_0 block each
  GgufWriter writer = model("llama");
  writer.tensor("blk.0.attn_q.weight", {16, 32}, Format::kQ4_0, rows);
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  const auto query = (*opened)->get("model.layers.0.self_attn.q_proj.weight", Shape{16, 32});
  ASSERT_TRUE(query) << query.error().message();
  EXPECT_EQ(query->format, Format::kQ4_0);
  const int expected[] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
  for (std::int64_t row = 0; row < 16; ++row) {
    EXPECT_EQ(std::to_integer<int>(query->row(row)[0]), expected[row]);
    EXPECT_EQ(std::to_integer<int>(query->row(row)[17]), expected[row]);
  }
}

TEST(GgufCheckpoint, OtherArchitecturesKeepTheirRows) {
  const auto query = counting(16 * kHidden);
  const auto opened = open(model("qwen2").tensor("blk.0.attn_q.weight", {16, kHidden}, query));
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(floats(**opened, "model.layers.0.self_attn.q_proj.weight", {16, kHidden}), query);
  EXPECT_TRUE(*(*opened)->config().boolean("tie_word_embeddings"));
}

TEST(GgufCheckpoint, FusedQkvIsSplitAndThenUnpermuted) {
  const auto fused = counting(32 * 2);
  const auto bias = counting(32, 100);
  for (const bool llama : {true, false}) {
    GgufWriter writer = model(llama ? "llama" : "qwen3");
    writer.tensor("blk.0.attn_qkv.weight", {32, 2}, fused).tensor("blk.0.attn_qkv.bias", {32}, bias);
    const auto opened = open(writer);
    ASSERT_TRUE(opened) << opened.error().message();
    const auto part = [&](const std::vector<float>& all, int begin, int end, bool permuted, int columns) {
      const std::vector<float> rows(all.begin() + begin * columns, all.begin() + end * columns);
      return llama && permuted ? unpermuted(rows, columns) : rows;
    };
    const std::string attention = "model.layers.0.self_attn.";
    EXPECT_EQ(floats(**opened, attention + "q_proj.weight", {16, 2}), part(fused, 0, 16, true, 2));
    EXPECT_EQ(floats(**opened, attention + "k_proj.weight", {8, 2}), part(fused, 16, 24, true, 2));
    EXPECT_EQ(floats(**opened, attention + "v_proj.weight", {8, 2}), part(fused, 24, 32, false, 2));
    EXPECT_EQ(floats(**opened, attention + "q_proj.bias", {16}), part(bias, 0, 16, true, 1));
    EXPECT_EQ(floats(**opened, attention + "v_proj.bias", {8}), part(bias, 24, 32, false, 1));
  }
}

GgufWriter experts(std::uint32_t count) {
  GgufWriter writer = model("qwen3moe");
  writer.metadata("qwen3moe.expert_count", count).metadata("qwen3moe.expert_used_count", std::uint32_t{2});
  return writer;
}

TEST(GgufCheckpoint, ExpertsBecomeMatrices) {
  GgufWriter writer = experts(3);
  writer.tensor("blk.0.ffn_gate_inp.weight", {3, kHidden}, counting(3 * kHidden));
  writer.tensor("blk.0.ffn_gate_exps.weight", {3, 2, kHidden}, counting(6 * kHidden));
  writer.tensor("blk.0.ffn_up_exps.weight", {3, 2, kHidden}, counting(6 * kHidden, 100));
  writer.tensor("blk.0.ffn_down_exps.weight", {3, kHidden, 2}, counting(6 * kHidden, 200));
  writer.tensor("blk.1.ffn_gate_up_exps.weight", {3, 4, 2}, counting(24));
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  const std::string first = "model.layers.0.mlp.";
  EXPECT_TRUE((*opened)->get(first + "gate.weight", {3, kHidden}));
  EXPECT_EQ(floats(**opened, first + "experts.2.gate_proj.weight", {2, kHidden}), counting(16, 32));
  EXPECT_EQ(floats(**opened, first + "experts.1.up_proj.weight", {2, kHidden}), counting(16, 116));
  EXPECT_EQ(floats(**opened, first + "experts.0.down_proj.weight", {kHidden, 2}), counting(16, 200));
  const std::string second = "model.layers.1.mlp.";
  EXPECT_EQ(floats(**opened, second + "experts.1.gate_proj.weight", {2, 2}), counting(4, 8));
  EXPECT_EQ(floats(**opened, second + "experts.1.up_proj.weight", {2, 2}), counting(4, 12));

  const Config& config = (*opened)->config();
  EXPECT_EQ(*config.string("model_type"), "qwen3_moe");
  EXPECT_EQ(*config.integer("num_experts"), 3);
  EXPECT_EQ(*config.integer("num_experts_per_tok"), 2);
  EXPECT_EQ(*config.integer("moe_intermediate_size"), 2) << "from the tensor";
  EXPECT_TRUE(*config.boolean("norm_topk_prob"));
}

TEST(GgufCheckpoint, Gemma3) {
  GgufWriter writer = model("gemma3");
  writer.metadata("gemma3.attention.sliding_window", std::uint32_t{16});
  writer.metadata("gemma3.rope.scaling.type", "linear").metadata("gemma3.rope.scaling.factor", 8.0f);
  writer.tensor("blk.0.ffn_norm.weight", {kHidden}, counting(kHidden));
  writer.tensor("blk.0.post_attention_norm.weight", {kHidden}, counting(kHidden, 10));
  writer.tensor("blk.0.post_ffw_norm.weight", {kHidden}, counting(kHidden, 20));
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  // GGUF stores 1 + w already.
  EXPECT_EQ(floats(**opened, "model.layers.0.pre_feedforward_layernorm.weight", {kHidden}),
            counting(kHidden));
  EXPECT_EQ(floats(**opened, "model.layers.0.post_attention_layernorm.weight", {kHidden}),
            counting(kHidden, 10));
  EXPECT_EQ(floats(**opened, "model.layers.0.post_feedforward_layernorm.weight", {kHidden}),
            counting(kHidden, 20));
  const nlohmann::json expected = {{"model_type", "gemma3_text"},
                                   {"num_hidden_layers", 2},
                                   {"max_position_embeddings", 64},
                                   {"hidden_size", 8},
                                   {"intermediate_size", 6},
                                   {"rms_norm_eps", static_cast<double>(1e-5f)},
                                   {"vocab_size", 3},
                                   {"tie_word_embeddings", true},
                                   {"num_attention_heads", 4},
                                   {"num_key_value_heads", 2},
                                   {"head_dim", 4},
                                   {"sliding_window", 16},
                                   {"rope_theta", 1e4},
                                   {"rope_local_base_freq", 1e4},
                                   {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}},
                                   {"query_pre_attn_scalar", 4},
                                   {"sliding_window_pattern", 6},
                                   {"hidden_activation", "gelu_pytorch_tanh"}};
  EXPECT_EQ((*opened)->config().json(), expected);
}

TEST(GgufCheckpoint, Gemma3SlidingLayersOneByOne) {
  GgufWriter writer = model("gemma3");
  writer.metadata("gemma3.attention.sliding_window_pattern", std::vector<bool>{true, false});
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(*(*opened)->config().strings("layer_types"),
            (std::vector<std::string>{"sliding_attention", "full_attention"}));
}

TEST(GgufCheckpoint, YarnAndEqualValuesPerLayer) {
  GgufWriter writer = model("qwen3");
  writer.metadata("qwen3.rope.scaling.type", "yarn").metadata("qwen3.rope.scaling.factor", 4.0f);
  writer.metadata("qwen3.rope.scaling.original_context_length", std::uint32_t{32});
  writer.metadata("qwen3.rope.scaling.yarn_beta_fast", 16.0f).metadata("qwen3.rope.freq_base", 1e6f);
  writer.metadata("qwen3.attention.sliding_window", std::vector<std::int32_t>{7, 7});
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ((*opened)->config().json()["rope_scaling"],
            (nlohmann::json{{"rope_type", "yarn"},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 32},
                            {"beta_fast", 16.0}}));
  EXPECT_EQ(*(*opened)->config().number("rope_theta"), 1e6);
  EXPECT_EQ(*(*opened)->config().integer("sliding_window"), 7);
}

TEST(GgufCheckpoint, SplitFilesAreOneModel) {
  const TempDir directory;
  const std::string path = GgufWriter::write_split(
      directory, "m",
      {model("qwen3"), GgufWriter().tensor("blk.0.attn_norm.weight", {kHidden}, counting(kHidden)),
       GgufWriter().tensor("blk.1.attn_norm.weight", {kHidden}, counting(kHidden, 50))});
  const auto opened = Checkpoint::open(path);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ((*opened)->source(), "GGUF v3, 3 parts");
  EXPECT_EQ(floats(**opened, "model.layers.1.input_layernorm.weight", {kHidden}), counting(kHidden, 50));
  EXPECT_EQ((*opened)->weight_bytes(), (3 + 1 + 1) * kHidden * 4);
}

std::string refusal(const GgufWriter& writer) {
  const auto opened = open(writer);
  return opened ? "" : opened.error().message();
}

TEST(GgufCheckpoint, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(GgufWriter()), "metadata key general.architecture is missing");
  EXPECT_EQ(refusal(model("mamba")),
            "architecture \"mamba\" is not supported; supported are llama, qwen2, qwen3, qwen3moe, gemma3");
  EXPECT_EQ(refusal(model("qwen2").tensor("blk.0.attn_sinks.weight", {4}, counting(4))),
            "tensor \"blk.0.attn_sinks.weight\" is not one that a qwen2 model has");
  EXPECT_EQ(refusal(model("qwen2").tensor("rope_freqs.weight", {2}, counting(2))),
            "tensor \"rope_freqs.weight\" is not one that a qwen2 model has");
  EXPECT_EQ(refusal(model("llama").tensor("blk.x.attn_q.weight", {2}, counting(2))),
            "tensor \"blk.x.attn_q.weight\" is not one that a llama model has");
  EXPECT_EQ(refusal(model("llama").tensor("blk.2.attn_norm.weight", {2}, counting(2))),
            "tensor \"blk.2.attn_norm.weight\" is beyond the model's 2 layers");
  EXPECT_EQ(refusal(model("llama")
                        .tensor("blk.00.ffn_norm.weight", {2}, counting(2))
                        .tensor("blk.0.ffn_norm.weight", {2}, counting(2))),
            "tensor \"model.layers.0.post_attention_layernorm.weight\" appears twice");
  EXPECT_EQ(refusal(model("llama").metadata("llama.rope.scaling.type", "longrope")),
            "metadata key llama.rope.scaling.type: \"longrope\" is not supported; none, linear and yarn are");
  EXPECT_EQ(refusal(model("llama").metadata("llama.rope.scaling.type", "yarn")),
            "metadata key llama.rope.scaling.factor: missing or not positive");
  EXPECT_EQ(refusal(model("llama").metadata("llama.attention.scale", 0.5f)),
            "metadata key llama.attention.scale: 0.5 is not supported");
  EXPECT_EQ(refusal(model("llama").metadata("llama.attention.causal", false)),
            "metadata key llama.attention.causal: false is not supported");
  EXPECT_EQ(
      refusal(model("llama").metadata("llama.rope.dimension_count", 2)),
      "metadata key llama.rope.dimension_count: 2 differs from the head dimension 4, which is not supported");
  EXPECT_EQ(
      refusal(model("llama").metadata("llama.attention.sliding_window", std::vector<std::int32_t>{1, 2})),
      "metadata key llama.attention.sliding_window: values that differ from layer to layer are not "
      "supported");
}

TEST(GgufCheckpoint, KeepsDataThatNoProductNeeds) {
  GgufWriter writer = model("qwen3");
  writer.tensor(
      {"blk.0.token_to_expert", {3, 2}, 26, bytes_of(std::vector<std::int32_t>{4, 0, 1, 2, 3, 5}), {}});
  const auto opened = open(writer);
  ASSERT_TRUE(opened) << opened.error().message();
  const Checkpoint& checkpoint = **opened;
  ASSERT_EQ(checkpoint.data_tensors().size(), 1u);
  const DataTensor& table = checkpoint.data_tensors().at("blk.0.token_to_expert");
  EXPECT_EQ(table.dtype, "I32");
  EXPECT_EQ(table.shape, (Shape{3, 2}));
  std::int32_t first = 0;
  std::memcpy(&first, table.bytes.data(), sizeof first);
  EXPECT_EQ(first, 4);
  EXPECT_EQ(checkpoint.weight_bytes(), 3 * kHidden * 4) << "data is no weight";

  writer.tensor({"blk.0.attn_norm.weight", {1}, 28, std::string(8, '\0'), {}});
  EXPECT_EQ(refusal(writer),
            "tensor \"blk.0.attn_norm.weight\" has type F64, which holds data; a weight is needed");
}

TEST(GgufCheckpoint, RefusesWrongShapes) {
  EXPECT_EQ(
      refusal(model("llama").tensor("blk.0.attn_q.weight", {12, 2}, counting(24))),
      "tensor \"model.layers.0.self_attn.q_proj.weight\": 12 rows are no even number for each of 4 heads");
  EXPECT_EQ(refusal(model("qwen3").tensor("blk.0.attn_qkv.weight", {30, 2}, counting(60))),
            "tensor \"blk.0.attn_qkv.weight\": shape [30, 2], expected a multiple of 8 rows");
  EXPECT_EQ(refusal(model("llama").tensor("blk.0.attn_q.bias", {32}, Format::kQ8_0, std::string(34, '\0'))),
            "tensor \"model.layers.0.self_attn.q_proj.bias\": a vector in Q8_0 cannot be cut");
  EXPECT_EQ(refusal(experts(4).tensor("blk.0.ffn_down_exps.weight", {3, 2, 2}, counting(12))),
            "tensor \"blk.0.ffn_down_exps.weight\": shape [3, 2, 2], expected the matrices of 4 experts");
  EXPECT_EQ(refusal(experts(4).tensor("blk.0.ffn_down_exps.weight", {4, 2}, counting(8))),
            "tensor \"blk.0.ffn_down_exps.weight\": shape [4, 2], expected the matrices of 4 experts");
  EXPECT_EQ(refusal(experts(2)
                        .tensor("blk.0.ffn_gate_up_exps.weight", {2, 3, 2}, counting(12))
                        .tensor("blk.0.ffn_down_exps.weight", {2, 2, 2}, counting(8))),
            "tensor \"blk.0.ffn_gate_up_exps.weight\": shape [2, 3, 2], expected as many gate as up rows");
  EXPECT_EQ(refusal(experts(1u << 30)),
            "metadata key qwen3moe.expert_count: 1073741824 is outside 1 to 65536");
}

}  // namespace
}  // namespace eider
