"""The C++ kernels against their numpy twin, in bits, on every instruction set this machine runs."""
