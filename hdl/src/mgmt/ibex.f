// What a top that contains Ibex needs besides its own text, for `verilator -F`. The core's RTL
// stays in its package, under $IBEX_ROOT; beside this file lie the two cells that its users supply.

// Leaves out assertions and models that are only for Ibex's own verification.
-DSYNTHESIS
+incdir+$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl
+incdir+$IBEX_ROOT/vendor/lowrisc_ip/dv/sv/dv_utils
+incdir+$IBEX_ROOT/rtl

ibex.vlt
prim_buf.sv
prim_clock_gating.sv

// Packages, each before those that import it.
$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl/prim_util_pkg.sv
$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl/prim_count_pkg.sv
$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl/prim_cipher_pkg.sv
$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl/prim_secded_pkg.sv
$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl/prim_ram_1p_pkg.sv
$IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl/prim_mubi_pkg.sv
$IBEX_ROOT/rtl/ibex_pkg.sv

// Modules, found by name.
-y $IBEX_ROOT/vendor/lowrisc_ip/ip/prim/rtl
-y $IBEX_ROOT/vendor/lowrisc_ip/ip/prim_generic/rtl
-y $IBEX_ROOT/rtl
