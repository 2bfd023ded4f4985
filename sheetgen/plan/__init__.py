"""The quarterly capacity plan: services by quarter, what to buy by which date, and for how much.

`read_plan` reads plan.yaml. Demand, machines, supply and money follow by formulas over declared tables (`tables`), on
the hardware that `recommend` would choose for each service.
"""
