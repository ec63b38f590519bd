"""Table 1 of Hwang et al. 2020: a support vector machine on the features of N-level units."""
