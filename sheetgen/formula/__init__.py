"""One formula, three readings: the same Python function computes a number, writes Excel text or JavaScript.

A sizing quantity is one function under `@formula`. Its name is the column's name, its parameters' names are the
quantities that it reads. Called with numbers or numpy arrays it computes; called with `Expr` objects it gives the tree
of its operations, which is printed as an Excel formula (in the Excel 2007 vocabulary) or as JavaScript.
"""

from sheetgen.formula.operations import at_most as at_most
from sheetgen.formula.operations import both as both
from sheetgen.formula.operations import count_of_places as count_of_places
from sheetgen.formula.operations import count_steps as count_steps
from sheetgen.formula.operations import count_where as count_where
from sheetgen.formula.operations import either as either
from sheetgen.formula.operations import exponential as exponential
from sheetgen.formula.operations import fading as fading
from sheetgen.formula.operations import first_where as first_where
from sheetgen.formula.operations import greatest_of_places as greatest_of_places
from sheetgen.formula.operations import greatest_where as greatest_where
from sheetgen.formula.operations import grouped_text as grouped_text
from sheetgen.formula.operations import hundredths_text as hundredths_text
from sheetgen.formula.operations import is_blank as is_blank
from sheetgen.formula.operations import is_number as is_number
from sheetgen.formula.operations import is_number_in_row as is_number_in_row
from sheetgen.formula.operations import is_text as is_text
from sheetgen.formula.operations import join_text as join_text
from sheetgen.formula.operations import largest as largest
from sheetgen.formula.operations import least_number as least_number
from sheetgen.formula.operations import least_where as least_where
from sheetgen.formula.operations import natural_log as natural_log
from sheetgen.formula.operations import normal_density as normal_density
from sheetgen.formula.operations import normal_quantile as normal_quantile
from sheetgen.formula.operations import normal_share as normal_share
from sheetgen.formula.operations import number_or_none as number_or_none
from sheetgen.formula.operations import number_where as number_where
from sheetgen.formula.operations import percent_text as percent_text
from sheetgen.formula.operations import power as power
from sheetgen.formula.operations import ratio as ratio
from sheetgen.formula.operations import remainder as remainder
from sheetgen.formula.operations import replace_text as replace_text
from sheetgen.formula.operations import round_down as round_down
from sheetgen.formula.operations import round_nearest as round_nearest
from sheetgen.formula.operations import round_up as round_up
from sheetgen.formula.operations import same_money as same_money
from sheetgen.formula.operations import smallest as smallest
from sheetgen.formula.operations import where as where
from sheetgen.formula.operations import where_number as where_number
from sheetgen.formula.operations import whole_text as whole_text
from sheetgen.formula.quantity import Formula as Formula
from sheetgen.formula.quantity import called_with as called_with
from sheetgen.formula.quantity import formula as formula
from sheetgen.formula.tree import OPERATIONS as OPERATIONS
from sheetgen.formula.tree import Expr as Expr
from sheetgen.formula.tree import Later as Later
from sheetgen.formula.tree import Quantity as Quantity
from sheetgen.formula.tree import Value as Value
from sheetgen.formula.tree import function as function
from sheetgen.formula.tree import literal as literal
