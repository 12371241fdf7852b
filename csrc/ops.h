// The table of kernels: what an instruction-set unit offers to the rest of the extension.
//
// Plain structs and function pointers only. `isa.cpp` is compiled once per instruction set and fills one `Ops` table;
// `cpu.cpp` picks a table at import. Every function works on one *block* of a job, so that `threads.h` can hand blocks
// to any thread in any order: no result depends on who computed it (docs/en/numerics.md). Nothing here allocates, locks
// or throws.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { TG_LANES = 16 };  // outputs in a panel, keys in a page, virtual lanes of every sum
enum { TG_GROUP = 32 };  // columns that share one scale
enum { TG_TILE = 8 };    // rows of activations that a product takes at once, at most
enum { TG_PAGE = 16 };   // positions in a KV page
enum { TG_SPAN = 256 };  // absolute positions in one softmax partial
enum { TG_MAX_HEAD_DIM = 256 };
enum { TG_PEAK_DOTS = 12 * 2048 };  // vectors of 64 multiply-adds in one block of int8_peak
enum { TG_STRETCH = 4096 };         // logits summed in float lanes; sums of stretches are joined in double

struct tg_linear_job;
struct tg_matrix;

// A kind of panel: how 16 rows of a matrix lie side by side (panels/panel.h). `kinds.h` has the table.
struct tg_kind {
    const char* name;             // of the block type in the file
    int32_t columns, file_bytes;  // values in a block of the file, and its bytes
    int32_t piece_bytes;          // what 16 blocks, one from each row, become
    int32_t is_float;             // multiplies float activations in every mode
    void (*pack)(const uint8_t* const* rows, int num_blocks, uint8_t* panel);  // 16 rows of the file
    void (*linear)(const tg_linear_job* job, const tg_matrix* m, int panel, int panel_end, int row, int row_end);
    void (*embed)(const tg_matrix* m, int id, float* out);  // row `id`, as floats
};

// A matrix [rows, cols] as panels of 16 rows; `panel_bytes` from one panel to the next.
struct tg_matrix {
    const uint8_t* data;
    size_t panel_bytes;
    const float* bias;  // added to every output; [rows], filled up to whole panels, or nullptr
    const tg_kind* kind;
    int32_t rows, cols;
    int32_t out_offset;   // first output column this matrix writes
    int32_t first_block;  // first block of the job that belongs to it
};

// 32 activations of a row in int8, x ~= scale * (q + zero), and what products need beside them: one line of the cache.
struct alignas(64) tg_group {
    int8_t q[TG_GROUP];
    float scale;
    int32_t sum;       // of q + zero
    float scaled_sum;  // scale * sum, for kinds with a minimum
    struct {
        int16_t zero, sum;  // the same sums; of the halves for kinds with two scales a group
    } all, half[2];
};

// Rows of activations: float32 [n, width] and, once quantised, groups. The groups of TG_TILE neighbouring rows lie side
// by side, [rows / 8][groups][8], so that a tile of rows finds all of them at one address.
struct tg_rows {
    float* data;  // [capacity, width]
    tg_group* quantised;
    int32_t width, groups;
};
static inline tg_group* tg_group_of(const tg_rows* x, int row, int group) {
    return x->quantised + ((size_t)(row / TG_TILE) * x->groups + group) * TG_TILE + row % TG_TILE;
}

struct tg_linear_job {
    const tg_matrix* matrices;
    int32_t num_matrices;
    int32_t panels_per_block;
    int32_t num_rows;
    int32_t row_blocks;      // blocks along the rows; block = panel_block * row_blocks + row_block
    int32_t rows_per_block;  // a multiple of TG_TILE
    int32_t exact;           // float activations everywhere
    int32_t add;             // out += instead of out =
    tg_rows x;
    float* out;  // [num_rows, out_width]
    int32_t out_width;
};

// Numbers of the KV cache (kv_page.h).
enum tg_kv { TG_KV_F32 = 0, TG_KV_F16 = 1, TG_KV_Q8 = 2 };

struct tg_attention_job {
    const float* q;             // [num_rows, q_stride], rotated
    float* out;                 // [num_rows, heads * head_dim]
    const uint8_t* pages;       // this layer's pages: [page][kv_head][K | V], kv_page.h
    const int32_t* page_table;  // [sequences, table_width]
    const int32_t* sequence;    // [num_rows] row of the page table
    const int32_t* position;    // [num_rows]
    float* partial;             // [num_rows * heads, spans, head_dim + 2], only where spans are separate blocks
    int32_t table_width, num_rows, q_stride, heads, kv_heads, head_dim;
    int32_t kv;              // tg_kv
    int32_t block_bytes;     // K and V of one KV head in one page
    int32_t window;          // positions that a row sees, its own and those before; all: INT32_MAX
    int32_t rows_per_block;  // neighbouring rows of one sequence that share the loads of a block
    int32_t spans;           // 0: a block does all spans of its rows; else one span
    float scale;
    float soft_cap;  // scores become soft_cap * tanh(score / soft_cap); 0: they stay
};

struct tg_rope_job {
    float* qkv;  // [num_rows, stride]: q heads, k heads, v heads
    uint8_t* pages;
    const float* cos_sin;  // [context, 2, rotated / 2], or nullptr: nothing is rotated
    const float* q_norm;   // [head_dim] weights of an RMS norm of each head before the rotation, or nullptr
    const float* k_norm;
    const int32_t* page_table;
    const int32_t* sequence;
    const int32_t* position;
    int32_t table_width, stride, heads, kv_heads, head_dim, kv, block_bytes, rotated;
    float eps;  // of q_norm and k_norm
};

struct tg_survey {
    float total, below;
    int32_t greater;
};

struct tg_ops {
    const char* name;
    const tg_kind* kinds;
    int32_t num_kinds;
    void (*quantise)(const tg_rows* x, int row);
    void (*linear)(const tg_linear_job* job, int block);
    void (*rms_norm)(const float* x, const float* weight, float* out, int width, float eps, int add);
    void (*layer_norm)(const float* x, const float* weight, const float* bias, float* out, int width, float eps);
    void (*swiglu)(const float* gate_up, float* out, int width);
    void (*geglu)(const float* gate_up, float* out, int width);
    void (*gelu)(const float* x, float* out, int width);
    void (*scale_row)(float* x, float factor, int width);
    void (*add_row)(const float* x, float* out, int width);
    void (*rope_store)(const tg_rope_job* job, int row);
    void (*attend)(const tg_attention_job* job, int block);
    void (*attend_merge)(const tg_attention_job* job, int row_head);
    int (*argmax)(const float* logits, int n);
    // weights = e^((logit - max) / temperature) of one stretch of at most TG_STRETCH; returns their sum
    float (*softmax)(const float* logits, float* weights, int n, float max, float temperature);
    // The first index from `from` on whose logit is greater than `limit`; n where there is none
    int (*next_above)(const float* logits, int from, int n, float limit);
    // For the reasons of a choice, of one stretch: sums of e^(logit - max) and of that times (logit - max), and how
    // many logits are greater than `chosen`
    tg_survey (*survey)(const float* logits, int n, float max, float chosen);
    int64_t (*read_all)(const uint8_t* data, size_t bytes);   // touches every cache line: the speed limit of memory
    int64_t (*int8_peak)(const uint8_t* w, const int8_t* x);  // TG_PEAK_DOTS products and nothing else: the other limit
};
