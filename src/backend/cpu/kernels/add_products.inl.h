// Enters the products of every format into a table: the body of an instruction set's file.

void add_products(Kernels& table) {
#define EIDER_ADD(F) table.product[static_cast<std::size_t>(F::kFormat)] = &product<F>;
  EIDER_FORMATS(EIDER_ADD)
#undef EIDER_ADD
}
