"""How good generated images are: distances on the features of a network, precision and recall, copies."""
