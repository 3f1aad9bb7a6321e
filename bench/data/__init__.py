"""What data of jobs costs: folders on their way to the depot, inputs on their way to nodes, what a node has already."""
