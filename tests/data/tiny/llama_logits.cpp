// Writes llama.cpp's logits of every position: llama_logits MODEL OUT ID... leaves float32 [ids, vocab_size]
// in OUT. A tool of scripts/make_tiny_models.py, built against a llama.cpp tree and no part of eider's build.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "llama.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: llama_logits MODEL OUT ID...\n");
    return 2;
  }
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (model == nullptr) return 1;
  std::vector<llama_token> tokens;
  for (int i = 3; i < argc; ++i) tokens.push_back(std::atoi(argv[i]));
  const auto count = static_cast<int>(tokens.size());

  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = 512;
  params.n_threads = params.n_threads_batch = 1;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) return 1;
  llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (int i = 0; i < count; ++i) {
    batch.token[i] = tokens[i];
    batch.pos[i] = i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  if (llama_decode(context, batch) != 0) return 1;

  const auto vocab_size = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
  std::FILE* out = std::fopen(argv[2], "wb");
  if (out == nullptr) return 1;
  for (int i = 0; i < count; ++i)
    if (std::fwrite(llama_get_logits_ith(context, i), sizeof(float), vocab_size, out) != vocab_size) return 1;
  return std::fclose(out) == 0 ? 0 : 1;
}
