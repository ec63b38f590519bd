"""Where learning starts: first parameters from the data, and rates that suit every layer."""

from harmonium.learning.starts.code_law import law_machine as law_machine
from harmonium.learning.starts.code_law import principal_machine as principal_machine
from harmonium.learning.starts.independent_filters import independent_components as independent_components
from harmonium.learning.starts.independent_filters import independent_filters as independent_filters
from harmonium.learning.starts.initialize import initialize as initialize
from harmonium.learning.starts.initialize_layers import initialize_layers as initialize_layers
from harmonium.learning.starts.layer_rates import layer_rates as layer_rates
from harmonium.learning.starts.principal_layers import principal_layers as principal_layers
from harmonium.learning.starts.spread_components import is_mixture as is_mixture
from harmonium.learning.starts.spread_components import spread_components as spread_components
