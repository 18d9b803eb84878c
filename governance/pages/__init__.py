"""What people see: views, their forms, and the reading behind them."""
