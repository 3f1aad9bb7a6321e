"""What the labels of nodes say: who carries which, what no node carries, and which nodes are close to each other."""
