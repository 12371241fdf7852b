// cos and sin of position * inverse_frequency, the same bits on every machine.
//
// The angle is a float32 product, as in Transformers, whose models were trained with it. Its cosine and sine are
// evaluated in double precision by our own reduction and series (no libm, whose last bit differs between machines) and
// rounded to float32.
#pragma once

namespace tokenglass {

// table: [context, 2, half]: the cosines of a position, then its sines.
void fill_rope_table(const float* inverse_frequency, int half, int context, float* table);

}  // namespace tokenglass
