// A buffer that synthesis must keep, where Ibex guards against faults by redundancy. The card uses
// none of that redundancy, so a wire will do.
module prim_buf #(
    parameter int Width = 1
) (
    input  logic [Width-1:0] in_i,
    output logic [Width-1:0] out_o
);
  assign out_o = in_i;
endmodule
