// cos and sin of position * inverse_frequency, the same bits on every machine.
//
// The angle is a float32 product, as in Transformers, whose models were trained with it. Its cosine and sine are
// evaluated in double precision by our own reduction and series (no libm, whose last bit differs between machines) and
// rounded to float32.
#pragma once

namespace tokenglass {

// The rows `from` to `to` of a table [context, 2, half]: the cosines of a position, then its sines, times `factor`.
void fill_rope_table(const float* inverse_frequency, int half, float factor, int from, int to, float* table);

}  // namespace tokenglass
