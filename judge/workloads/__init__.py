"""What clients do and how they do it: one module per workload, generator and client side by side."""
