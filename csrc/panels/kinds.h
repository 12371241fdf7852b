// The table of panel kinds, one row each. A new kind is a file beside this one and a row here.
#pragma once
#include "../matmul.h"
#include "floats.h"
#include "iq4_nl.h"
#include "q2_k.h"
#include "q3_k.h"
#include "q4.h"
#include "q45_k.h"
#include "q5.h"
#include "q6_k.h"
#include "q8_0.h"

namespace {

template <class K>
constexpr tg_kind row() {
    return {K::kName, K::kColumns, K::kFileBytes, K::kBytes, K::kIsFloat, pack<K>, panels_times_rows<K>, embed<K>};
}

constexpr tg_kind kinds[] = {
    row<F32Panel>(),  row<F16Panel>(),  row<BF16Panel>(), row<Q4_0Panel>(),   row<Q4_1Panel>(),
    row<Q5_0Panel>(), row<Q5_1Panel>(), row<Q8_0Panel>(), row<IQ4_NLPanel>(), row<Q2_KPanel>(),
    row<Q3_KPanel>(), row<Q4_KPanel>(), row<Q5_KPanel>(), row<Q6_KPanel>(),
};

}  // namespace
