// What the `verilated` crate's C++ needs to compile against Verilator 5.
//
// The crate was written for Verilator 4: it recognises the callbacks of 4.38 and later by
// `major == 4`, and calls `rolloverMB`, which has since become `rolloverSize` in bytes.
// `.cargo/config.toml` forces this file into every C++ compilation of the workspace; outside the
// crate, which alone defines the macro below, it is empty.
#if defined(VERILATOR_VERSION_MAJOR) && VERILATOR_VERSION_MAJOR >= 5
#include <verilated.h>
#include <verilated_vcd_c.h>
#undef VERILATOR_VERSION_MAJOR
#undef VERILATOR_VERSION_MINOR
#define VERILATOR_VERSION_MAJOR 4
#define VERILATOR_VERSION_MINOR 228
#define rolloverMB(megabytes) rolloverSize(static_cast<uint64_t>(megabytes) << 20)
#endif
