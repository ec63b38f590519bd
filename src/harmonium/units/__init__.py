"""Units: the law of one unit a file. A line here is all that a new one needs."""

from harmonium.units.activation import Activation as Activation
from harmonium.units.base import Units as Units
from harmonium.units.bernoulli import Bernoulli as Bernoulli
from harmonium.units.binomial import Binomial as Binomial
from harmonium.units.categorical import Categorical as Categorical
from harmonium.units.gaussian import Gaussian as Gaussian
from harmonium.units.max_pooled import MaxPooled as MaxPooled
from harmonium.units.mixed import Mixed as Mixed
from harmonium.units.multinary import Multinary as Multinary
from harmonium.units.multivariate_gaussian import MultivariateGaussian as MultivariateGaussian
from harmonium.units.nrelu import NReLU as NReLU
from harmonium.units.poisson import Poisson as Poisson
from harmonium.units.spin import Spin as Spin
