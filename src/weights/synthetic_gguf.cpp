// A synthetic model as a GGUF file: the metadata that readers ask for.
#include <fmt/format.h>

#include "text/byte_alphabet.h"
#include "text/vocabulary.h"
#include "weights/gguf_writer.h"
#include "weights/synthetic.h"

namespace eider {
namespace {

void add_sizes(const ModelShape& m, GgufWriter& writer) {
  const auto key = [&](const char* name) { return fmt::format("{}.{}", m.architecture, name); };
  writer.u32(key("block_count"), m.num_hidden_layers)
      .u32(key("context_length"), m.max_position_embeddings)
      .u32(key("embedding_length"), m.hidden_size)
      .u32(key("feed_forward_length"), m.intermediate_size)
      .u32(key("attention.head_count"), m.num_attention_heads)
      .u32(key("attention.head_count_kv"), m.num_key_value_heads)
      .u32(key("attention.key_length"), m.head_dim)
      .u32(key("attention.value_length"), m.head_dim)
      .f32(key("attention.layer_norm_rms_epsilon"), m.rms_norm_eps)
      .u32(key("rope.dimension_count"), m.head_dim)
      .f32(key("rope.freq_base"), m.rope_theta)
      .u32(key("vocab_size"), m.vocab_size);
  if (m.num_experts > 0)
    writer.u32(key("expert_count"), m.num_experts)
        .u32(key("expert_used_count"), m.num_experts_per_tok)
        .u32(key("expert_feed_forward_length"), m.moe_intermediate_size);
  if (m.sliding_window > 0) writer.u32(key("attention.sliding_window"), m.sliding_window);
  if (m.rope_linear_factor > 0)
    writer.string(key("rope.scaling.type"), "linear").f32(key("rope.scaling.factor"), m.rope_linear_factor);
}

/// Byte-level BPE: every byte, an end of text, one merge (some readers want a list of them), and
/// placeholders up to the shape's vocabulary.
void add_vocabulary(std::int64_t vocab_size, GgufWriter& writer) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_to_alphabet(static_cast<std::uint8_t>(byte)));
  const auto end_of_text = static_cast<std::int64_t>(tokens.size());
  tokens.emplace_back("<|endoftext|>");
  tokens.emplace_back("th");
  while (static_cast<std::int64_t>(tokens.size()) < vocab_size)
    tokens.push_back(fmt::format("token{}", tokens.size()));
  std::vector<std::int32_t> types(tokens.size(), static_cast<std::int32_t>(TokenType::kNormal));
  types[static_cast<std::size_t>(end_of_text)] = static_cast<std::int32_t>(TokenType::kControl);
  writer.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "gpt-2")
      .strings("tokenizer.ggml.tokens", tokens)
      .i32s("tokenizer.ggml.token_type", types)
      .strings("tokenizer.ggml.merges", {"t h"})
      .u32("tokenizer.ggml.bos_token_id", end_of_text)
      .u32("tokenizer.ggml.eos_token_id", end_of_text)
      .boolean("tokenizer.ggml.add_bos_token", false);
}

}  // namespace

Status SyntheticModel::write_gguf(const std::string& path, const WriteProgress& progress) const {
  GgufWriter writer;
  writer.string("general.architecture", shape_.architecture).string("general.name", name_ + " (synthetic)");
  add_sizes(shape_, writer);
  add_vocabulary(shape_.vocab_size, writer);
  return writer.write(path, tensors_, progress);
}

}  // namespace eider
