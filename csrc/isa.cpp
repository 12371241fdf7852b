// One instruction set's kernels. CMakeLists.txt compiles this file once per instruction set, with its flags and
// TG_ISA_NAME. Everything but the table lives in an anonymous namespace and only C headers are included: no wide copy
// of a shared inline function can be linked into another unit.
#include "attention.h"
#include "limits.h"
#include "ops.h"
#include "panels/kinds.h"
#include "quantise.h"
#include "rope_store.h"
#include "row_ops.h"
#include "vocab.h"

#define TG_JOIN2(a, b) a##b
#define TG_JOIN(a, b) TG_JOIN2(a, b)
#define TG_STRING2(a) #a
#define TG_STRING(a) TG_STRING2(a)

extern "C" const tg_ops TG_JOIN(tg_ops_, TG_ISA_NAME);
extern "C" const tg_ops TG_JOIN(tg_ops_, TG_ISA_NAME) = {
    TG_STRING(TG_ISA_NAME),
    kinds,
    sizeof kinds / sizeof kinds[0],
    quantise,
    linear,
    rms_norm,
    layer_norm,
    swiglu,
    geglu,
    gelu,
    scale_row,
    add_row,
    rope_store,
    attend,
    attend_merge,
    argmax,
    softmax,
    next_above,
    survey,
    read_all,
    int8_peak,
};
