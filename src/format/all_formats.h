// Every storage format, for loops over them.
#pragma once

#include "format/storage_format.h"

namespace eider {

/// In the order of EIDER_FORMATS.
inline constexpr Format kAllFormats[] = {
#define EIDER_FORMAT(F) F::kFormat,
    EIDER_FORMATS(EIDER_FORMAT)
#undef EIDER_FORMAT
};

}  // namespace eider
