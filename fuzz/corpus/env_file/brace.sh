A=${X
