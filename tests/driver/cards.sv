// Two cards that share nothing but their clocks. What is between them and around them is the test's.
module cards (
  input wire clock,
  input wire processor_clock
);
  nic_tiny a (.clock(clock), .processor_clock(processor_clock));
  nic_tiny b (.clock(clock), .processor_clock(processor_clock));
endmodule
