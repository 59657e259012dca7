"""GROUP BY: the operator, and the three ways a function follows its group.

``linear`` functions keep additive totals, ``extreme`` ones look only at the ends of an ordered group, and ``recompute``
ones read the touched group again.
"""
