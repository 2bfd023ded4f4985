"""The cheapest that holds the load, or the reason nothing does.

Four axes, as in the workbook: models, profiles (a GPU at a layout), loads (model x workload x requests at once) and
offers (an instance at a layout). What a replica holds is worked out per load and profile, what it costs per load and
offer; the choice is the least of a row.
"""
