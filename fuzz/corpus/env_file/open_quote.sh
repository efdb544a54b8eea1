A="x
B=2