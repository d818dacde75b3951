// Two cards that share nothing but a clock. What is between them and around them is the test's.
module cards (
  input wire clock
);
  nic_tiny a (.clock(clock));
  nic_tiny b (.clock(clock));
endmodule
