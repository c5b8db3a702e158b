// Enters the down products of every format into a table: the body of an instruction set's file.

void add_moe_downs(Kernels& table) {
#define EIDER_ADD(F) table.moe_down[static_cast<std::size_t>(F::kFormat)] = &moe_down<F>;
  EIDER_FORMATS(EIDER_ADD)
#undef EIDER_ADD
}
