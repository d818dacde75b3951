// The gate that stops Ibex's clock while it sleeps. It saves power and changes nothing else, and
// an FPGA has few of them: the clock runs on. A gate that looks at the level of the clock would be
// simulated wrongly, too: see decision 0030.
module prim_clock_gating #(
    parameter bit NoFpgaGate    = 1'b0,
    parameter bit FpgaBufGlobal = 1'b1
) (
    input  logic clk_i,
    input  logic en_i,
    input  logic test_en_i,
    output logic clk_o
);
  assign clk_o = clk_i;

  logic unused;
  assign unused = ^{NoFpgaGate, FpgaBufGlobal, en_i, test_en_i};
endmodule
