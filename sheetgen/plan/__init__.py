"""The quarterly capacity plan: services by quarter, what to buy by which date, and for how much.

`read` takes plan.yaml; demand, machines, supply and money follow by formulas over declared tables (`tables`), with the
hardware that `recommend` chooses.
"""
