// From the blocks of a file to the panels that matmul.h reads (layouts are drawn there). Nothing is lost and nothing
// grows.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ops.h"

namespace tokenglass {

// A block in the file: `values` columns in `bytes`; the panel kind it becomes.
struct FileFormat {
    const char* name;
    int values, bytes;
    tg_kind kind;
};
const FileFormat* find_format(const char* name);  // nullptr: no panel kind for it

size_t panel_bytes(tg_kind kind, int cols);

// Packs panel `panel` (16 rows) of a [rows, cols] matrix. order[i], where given, is the file's row that becomes row i.
// Rows past the end are zeros.
void pack_panel(const FileFormat& format, const uint8_t* source, int rows, int cols, const int32_t* order, int panel,
                uint8_t* panel_out);

}  // namespace tokenglass
